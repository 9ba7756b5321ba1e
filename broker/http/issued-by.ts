/** The token issuer of a pipeline, or of an agent's workload, as owners see it. */
import { z } from 'zod';
import type { Trusted } from '../auth/issued-token.ts';
import { instant } from './reply.ts';

/** Members of the schema in answers. */
export const ISSUED_BY_SHOWN = {
  issuer: z.string(),
  subject: z.string(),
  jwks_uri: z.string().nullable(),
  audience: z.url().describe('the only value of `aud` that its tokens may have'),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable().describe('null: never'),
};

/** Builds these members. `audience`: the required value of `aud`. */
export const issuedByShown = (
  {
    issuer,
    subject,
    jwks_uri,
    created_at,
    last_used_at,
  }: Trusted & { created_at: number; last_used_at: number | null },
  audience: string,
) => ({
  issuer,
  subject,
  jwks_uri,
  audience,
  created_at: new Date(created_at).toISOString(),
  last_used_at: instant(last_used_at),
});
