/** Schemas shared by channels and audit sinks: both are receivers, with a secret, that can be tested. */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import { writeSecretParts } from '../platforms/secret-parts.ts';
import { text } from '../wire/action.ts';

/** One text, or several by name. */
export const ReceiverSecret = z
  .union([text(4096).min(1), z.record(text(64), text(4096))])
  .transform((value) => new Secret(typeof value === 'string' ? value : writeSecretParts(value)))
  .optional();

/** Present for a receiver that was just added. */
export const MadeSecret = z
  .string()
  .optional()
  .describe('the key that the broker made, with which the receiver verifies; shown this once');

/** The answer of a receiver's `/test`. */
export const TestAnswers = {
  200: {
    description: 'The result, as a sentence.',
    schema: z.object({ ok: z.boolean(), detail: z.string() }),
  },
};
