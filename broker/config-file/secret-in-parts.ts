/** A reference to a secret, or one to each part of a secret with several parts. */
import { z } from 'zod';
import { recordOf, SecretReference } from '../platforms/fields.ts';

export const SecretInParts = z.union(
  [
    SecretReference,
    recordOf(
      z.string().regex(/^(?!(?:env|file)$)[a-z_]{1,64}$/, 'is not the name of a part of a secret'),
      SecretReference,
    ),
  ],
  {
    error:
      'write { env: NAME } or { file: PATH }, or such a reference for each part of the secret; a secret itself is never written here',
  },
);
export type SecretInParts = z.infer<typeof SecretInParts>;
