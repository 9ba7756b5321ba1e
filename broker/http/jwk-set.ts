import { z } from 'zod';

/** RFC 7517 section 5, as far as those who look a key up need it. */
export const JwkSet = z
  .object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string(), alg: z.string().optional() })) })
  .meta({ id: 'JwkSet' });
