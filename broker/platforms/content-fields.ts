/** Manifest fields for operations whose content decides the scope. */
import { z } from 'zod';
import { JsonPointer } from './fields.ts';

export const ScopeId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9:._/-]{0,127}$/, 'write a scope id such as "crm:contacts.read"')
  .describe('The id of a scope, by custom "<platform>:<area>.<action>".');

export const ContentRule = z
  .strictObject({
    pointer: JsonPointer.optional().describe(
      'The place: a JSON pointer (RFC 6901); "*" matches each element. Omitted, every call of the operation counts.',
    ),
    paths: z
      .array(z.string())
      .min(1)
      .optional()
      .describe(
        'Which paths of files count there, as "/.github/workflows/**" from the top; left out, everything counts but false and null.',
      ),
    unless: z
      .array(z.union([z.string(), z.number(), z.boolean()]))
      .min(1)
      .max(20)
      .optional()
      .describe('Values that do not count there, in addition to false and null: "confirmed", or "false" in a form.'),
    is: z.null().optional().describe('Only null counts there, with which a call removes a member.'),
    in: z
      .literal('query')
      .optional()
      .describe('Only the query is inspected, for any body: an uploaded file is not read.'),
    scope: ScopeId.nullable().describe(
      'The scope that such a call needs in addition to that of its operation, or with `in: query` instead of it; null: it is in no scope.',
    ),
  })
  .describe('What the body of an operation, or its query, must hold for the call to need a further scope.');
