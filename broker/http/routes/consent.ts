/** The consent of an owner to an MCP client: what is asked, and the decision. */

import { z } from 'zod';
import { newIds } from '../../admin/invites.ts';
import { type AskedConsent, type ConsentChoice, consentToMcpClient } from '../../admin/mcp-consent.ts';
import { AUTHORISATION_SECONDS, MCP_SCOPES, type McpScope, OAUTH_PATHS } from '../../oauth-server/metadata.ts';
import { present } from '../../policy/present.ts';
import { findAgent } from '../../store/agents.ts';
import { consentOffer, Offer } from '../consent-offer.ts';
import { grantConsent, loadConsentRequest, refuseConsent } from '../consent-request.ts';
import { Refusal } from '../errors.ts';
import { ownerChange } from '../owner-change.ts';
import { AgentName, ScopesOnPlatforms } from '../registering.ts';
import { json } from '../reply.ts';
import { type Context, route } from '../route.ts';

const PARAMS = { uid: z.string().describe('what the authorization server called the request') };

const Asked = z.object({
  client: z.object({
    id: z.string(),
    name: z.string().describe('as it calls itself: nobody has checked that'),
    vouched_by: z.string().nullable().describe('the site whose document describes it; null: it registered by itself'),
    redirect_host: z.string().describe('who gets the code'),
    redirect_uri: z.string(),
  }),
  scopes: z.array(z.string()),
  owner: z.object({ id: z.guid(), email: z.string(), role: z.enum(['admin', 'approver', 'viewer']) }),
  lasts_days: z.int(),
  decided: z.url().nullable().describe('where the browser goes on to, when it was decided already'),
  offer: Offer,
});

/** GET /oauth/consent/{uid}/request */
export const consentRequest = route({
  method: 'GET',
  path: `${OAUTH_PATHS.consent}/{uid}/request`,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.consent.read',
  summary: 'What an MCP client asks for, and what it can be given.',
  params: PARAMS,
  answers: { 200: { description: 'The request.', schema: Asked } },
  errors: ['not_found'],
  handle: async (context) => {
    const { client, asked, interaction } = await loadConsentRequest(context);
    const { services, who } = context;
    return json(200, {
      client: {
        id: client.clientId,
        name: asked.client_name,
        vouched_by: client.clientId.startsWith('https:') ? new URL(client.clientId).host : null,
        redirect_host: asked.redirect_host,
        redirect_uri: interaction.params.redirect_uri ?? '',
      },
      scopes: asked.scope.split(' '),
      owner: { id: who.owner.id, email: who.owner.email, role: who.role },
      lasts_days: AUTHORISATION_SECONDS / 86_400,
      decided: interaction.result === undefined ? null : interaction.returnTo,
      offer: await consentOffer(services.broker.store.db, who.owner, asked.client_name),
    });
  },
});

const Decision = z.discriminatedUnion('allow', [
  z.strictObject({ allow: z.literal(false) }),
  z.strictObject({
    allow: z.literal(true),
    agent: z.string().max(64).optional().describe('an agent that an MCP client was let in as before'),
    name: AgentName.optional().describe('what a new agent is called'),
    policy: z.string().min(1).max(64).optional().describe('its id or its name; the default one when left out'),
    grants: ScopesOnPlatforms.optional().describe('what a new agent may do; nothing when left out'),
    owner_id: z
      .guid()
      .optional()
      .describe('who decides, as the page says it: another session may have begun meanwhile'),
    scopes: z
      .array(z.enum(MCP_SCOPES))
      .min(1)
      .optional()
      .describe('what its tokens are good for, of what it asked for; all of that when left out'),
  }),
]);

/** POST /oauth/consent/{uid}/decision: only an admin lets a client in; every owner may say no. */
export const consentDecision = route({
  method: 'POST',
  path: `${OAUTH_PATHS.consent}/{uid}/decision`,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.consent.decide',
  summary: 'Lets an MCP client in, as an agent, or sends it away.',
  params: PARAMS,
  body: Decision,
  answers: {
    200: {
      description: 'Where the browser goes on to.',
      schema: z.object({ location: z.url(), agent_id: z.string().nullable() }),
    },
  },
  errors: ['invalid_request', 'forbidden', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { client, asked } = await loadConsentRequest(context);
    if (!body.allow) return json(200, { location: await refuseConsent(context, asked), agent_id: null });
    if (who.role !== 'admin')
      throw new Refusal('forbidden', `Only an admin lets new clients in; your role is ${who.role}. Ask an admin.`);
    if (body.owner_id !== undefined && body.owner_id !== who.owner.id)
      throw new Refusal(
        'conflict',
        `You are ${who.owner.email} by now. Load this page again to see what you decide on.`,
      );
    const choice = await choiceOf(context, body);
    const given = givenOf(asked, body);
    const change = { reason: 'mcp_client_allowed', detail: asked.client_name, agent: choice.ids };
    const now = services.broker.clock();
    const location = await ownerChange(context, change, async (db, note) => {
      const id = await consentToMcpClient(db, who.owner, asked, choice, given, now, note);
      return await grantConsent(context, db, { id, client, asked, given });
    });
    return json(200, { location, agent_id: choice.ids.agent_id });
  },
});

type Allowing = Extract<z.output<typeof Decision>, { allow: true }>;

async function choiceOf(
  { services, who }: Pick<Context<'owner'>, 'services' | 'who'>,
  { agent: named, name, policy, grants }: Allowing,
): Promise<ConsentChoice> {
  if ((named === undefined) === (name === undefined))
    throw new Refusal('invalid_request', 'Say either the name of a new agent, or which agent it is.');
  if (name !== undefined)
    return { as: 'new', ids: newIds(), name, grants: grants ?? [], ...(policy !== undefined && { policy }) };
  const agent = await findAgent(services.broker.store.db, who.organisationId, present(named, 'agent'));
  if (!agent) throw new Refusal('invalid_request', 'agent: the organisation has no such agent.');
  return { as: 'known', ids: { id: agent.id, agent_id: agent.agent_id } };
}

/** Of the scopes that it asked for, in that order. */
function givenOf({ scope }: AskedConsent, { scopes }: Allowing): readonly string[] {
  const asked = scope.split(' ');
  const foreign = scopes?.find((one) => !asked.includes(one));
  if (foreign !== undefined) throw new Refusal('invalid_request', `scopes: the client did not ask for ${foreign}.`);
  return scopes === undefined ? asked : asked.filter((one) => scopes.includes(one as McpScope));
}
