/** The workload of an agent, and whose tokens a pipeline brings, as owners write and see them. */
import { z } from 'zod';
import type { ReadWorkload } from '../admin/workloads.ts';
import { audienceOfAgent } from '../auth/authenticate-workload.ts';
import { IssuerUrl } from '../people/caller-issuer.ts';
import { instant } from './instant.ts';

/** Of tokens that a platform issues for its jobs and workloads. */
export const ISSUED_BY = {
  issuer: IssuerUrl.meta({
    format: 'uri',
    description: '`iss` of its tokens, such as https://token.actions.githubusercontent.com',
  }),
  subject: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'write printable ASCII without spaces, 255 characters at most')
    .refine((subject) => !subject.includes('*'), 'is compared as it is: * stands for nothing else')
    .describe('`sub` of its tokens, whole, such as system:serviceaccount:agents:triage'),
  jwks_uri: IssuerUrl.optional().describe('where the keys of the issuer are; found by discovery when it is not given'),
};

export const NewWorkload = z.strictObject(ISSUED_BY);

export const WorkloadShown = z
  .object({
    id: z.guid().describe('names it in audit rows; another one after each change'),
    issuer: z.string(),
    subject: z.string(),
    jwks_uri: z.string().nullable(),
    audience: z.url().describe('what has to stand in `aud` of its tokens, alone'),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().describe('to some minutes; null: never'),
  })
  .meta({ id: 'Workload' });

export const workloadShown = (baseUrl: string, agentId: string, one: ReadWorkload): z.output<typeof WorkloadShown> => ({
  id: one.id,
  issuer: one.issuer,
  subject: one.subject,
  jwks_uri: one.jwks_uri,
  audience: audienceOfAgent(baseUrl, agentId),
  created_at: new Date(one.created_at).toISOString(),
  last_used_at: instant(one.last_used_at),
});
