import { z } from 'zod';

/** A JWK Set (RFC 7517 section 5), with the members that are needed to look up a key. */
export const JwkSet = z
  .object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string(), alg: z.string().optional() })) })
  .meta({ id: 'JwkSet' });
