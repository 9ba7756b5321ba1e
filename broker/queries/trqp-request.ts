/** Request bodies of the Trust Registry Query Protocol v2.0 (specification, TRQP request). */
import { z } from 'zod';
import { text } from '../wire/action.ts';
import { DateTime } from '../wire/date-time.ts';
import { readAuthority, readEntity } from './identifiers.ts';

/** Maximum length of a SPIFFE id (SPIFFE ID, section 2.3). */
const identifier = text(2048);
const ENTITY = 'must be did:web:<host>:agents:<agent_id>, an agent id (agt_…), or a spiffe:// id';
const AUTHORITY = 'must be did:web:<host>, or did:web:<host>:orgs:<organisation uuid>';
const name = text(1024).min(1);

const AuthorizationContext = z.looseObject({
  time: DateTime.optional().describe('echoed; only now is evaluated'),
  connection_id: z
    .guid()
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('which of several grants on the platform, by its connection'),
});

export const TrqpAuthorizationQuery = z
  .object({
    entity_id: identifier
      .refine((id) => readEntity(id) !== undefined, ENTITY)
      .describe('`did:web:<host>:agents:<agent_id>`, an agent id, or a `spiffe://` id'),
    authority_id: identifier
      .refine((id) => readAuthority(id) !== undefined, AUTHORITY)
      .describe('`did:web:<host>`, or `did:web:<host>:orgs:<organisation uuid>`'),
    action: name.describe('a scope id, as granted'),
    resource: name.describe('a platform id'),
    context: AuthorizationContext.optional(),
  })
  .meta({ id: 'TrqpAuthorizationQuery' });
export type TrqpAuthorizationQuery = z.infer<typeof TrqpAuthorizationQuery>;

export const TrqpRecognitionQuery = TrqpAuthorizationQuery.extend({
  action: name.describe('echoed and not evaluated; conventionally `*`'),
  resource: name.describe('echoed and not evaluated; conventionally `*`'),
  context: AuthorizationContext.omit({ connection_id: true }).optional(),
}).meta({ id: 'TrqpRecognitionQuery' });
export type TrqpRecognitionQuery = z.infer<typeof TrqpRecognitionQuery>;
