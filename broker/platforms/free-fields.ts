/** Manifest fields for calls under a standing approval. */
import { z } from 'zod';

const Member = z
  .string()
  .regex(
    /^(?:\/.+|\?.+|[1-9][0-9]?)$/,
    'write "/text" of the body, "?q" of the query, or "1" for the first * of the path',
  );

export const FREE_FIELDS = {
  free: z
    .record(
      z.string(),
      z
        .array(
          z.union(
            [
              Member,
              z.strictObject({
                member: Member,
                at_most: z.literal(true).describe('It is a number, and may differ only up to a limit.'),
              }),
            ],
            {
              error:
                'write "/text" of the body, "?q" of the query, "1" for the first * of the path, or { member: "/amount", at_most: true }',
            },
          ),
        )
        .min(1)
        .max(20),
    )
    .optional()
    .describe(
      'Members in which calls of an operation may differ that one standing approval covers, where its owner ticks them: content, such as a text, never who gets it. Calls of operations that are not listed have to be identical, or are held.',
    ),
};
