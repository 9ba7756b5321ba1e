/** Whose tokens a pipeline, or the workload of an agent, brings: as owners write and see it. */
import { z } from 'zod';
import { SUBJECT_FORM, type Trusted } from '../auth/issued-token.ts';
import { IssuerUrl } from '../people/caller-issuer.ts';
import { instant } from './instant.ts';

/** In bodies. */
export const ISSUED_BY = {
  issuer: IssuerUrl.meta({
    format: 'uri',
    description: '`iss` of its tokens, such as https://token.actions.githubusercontent.com',
  }),
  subject: z
    .string()
    .regex(SUBJECT_FORM, 'write printable ASCII without spaces, 255 characters at most')
    .refine((subject) => !subject.includes('*'), 'is compared as it is: * stands for nothing else')
    .describe('`sub` of its tokens, whole, such as system:serviceaccount:agents:triage'),
  jwks_uri: IssuerUrl.optional().describe('where the keys of the issuer are; found by discovery when it is not given'),
};

/** In answers. */
export const ISSUED_BY_SHOWN = {
  issuer: z.string(),
  subject: z.string(),
  jwks_uri: z.string().nullable(),
  audience: z.url().describe('what has to stand in `aud` of its tokens, alone'),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable().describe('null: never'),
};

/** `audience`: what has to stand in `aud`. */
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
