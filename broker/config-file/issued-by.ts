/** Schema of the issuer and subject whose tokens a pipeline, or the workload of an agent, has: in request bodies and in governance files. */
import { z } from 'zod';
import { SUBJECT_FORM } from '../auth/issued-token.ts';
import { IssuerUrl } from '../people/caller-issuer.ts';

export const ISSUED_BY = {
  issuer: IssuerUrl.meta({
    format: 'uri',
    description: '`iss` of its tokens, such as https://token.actions.githubusercontent.com',
  }),
  subject: z
    .string()
    .regex(SUBJECT_FORM, 'write printable ASCII without spaces, 255 characters at most')
    .refine((subject) => !subject.includes('*'), 'is compared literally: * is no wildcard')
    .describe('`sub` of its tokens, whole, such as system:serviceaccount:agents:triage'),
  jwks_uri: IssuerUrl.optional().describe('where the keys of the issuer are; found by discovery when it is not given'),
};
