/** The consent of an owner to an MCP client: the request, and the decision. */

import { z } from 'zod';
import { consentToMcpClient, refuseMcpClient } from '../../admin/mcp-consent.ts';
import { consentOffer } from '../../admin/people/consent-offer.ts';
import { AUTHORISATION_SECONDS, MCP_SCOPES, OAUTH_PATHS } from '../../oauth-server/metadata.ts';
import { loadConsentRequest, reportConsentRefused, storeConsentGrant } from '../consent-request.ts';
import { Refusal } from '../errors.ts';
import { changingOwner } from '../owner-change.ts';
import { OrganisationNamed, organisationsOf } from '../owners-organisations.ts';
import { AgentName, ScopesOn, ScopesOnPlatforms } from '../registration-request.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const AgentNamed = z.object({ agent_id: z.string(), name: z.string() });

const Offer = z.object({
  name: z.string().describe('a name for a new agent that nobody has'),
  last: z
    .string()
    .nullable()
    .describe(
      'the agent of `known` as which this owner authorised the same client last; null: none, or not certainly the same client',
    ),
  /** Agents as which the client may continue: of the same name, or of any other. */
  known: z.array(AgentNamed).describe('agents that MCP clients were authorised as before; most likely ones first'),
  platforms: z
    .array(
      z.object({
        platform: z.string(),
        name: z.string(),
        connected: z.boolean(),
        reads: z.array(z.string()).describe('its scopes that only look'),
        all: z.array(z.string()),
      }),
    )
    .describe('what can be granted at all'),
  policies: z.array(z.object({ id: z.guid(), name: z.string() })).describe('under which; the default one first'),
  alike: z
    .array(AgentNamed.extend({ grants: ScopesOn }))
    .describe('agents whose grants a new one may have, too: those that are nothing but scopes'),
});

const PARAMS = { uid: z.string().describe('what the authorization server called the request') };

const Asked = z.object({
  client: z.object({
    id: z.string(),
    name: z.string().describe('as it calls itself: nobody has checked that'),
    published_by: z.string().nullable().describe('the site whose document describes it; null: it registered by itself'),
    redirect_host: z.string().describe('who gets the code'),
    redirect_uri: z.string(),
  }),
  scopes: z.array(z.string()),
  owner: z.object({ id: z.guid(), email: z.string(), role: z.enum(['admin', 'approver', 'viewer']) }),
  organisation: OrganisationNamed.describe('in which the client would be an agent'),
  organisations: z.array(OrganisationNamed).describe('others of this owner, who signed in at an identity provider'),
  lasts_days: z.int(),
  decided: z.url().nullable().describe('where to send the browser, if it was decided already'),
  offer: Offer,
});

/** GET /oauth/consent/{uid}/request */
export const consentRequest = route({
  method: 'GET',
  path: `${OAUTH_PATHS.consent}/{uid}/request`,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.consent.read',
  summary: 'What an MCP client requests, and what it can be granted.',
  params: PARAMS,
  answers: { 200: { description: 'The request.', schema: Asked } },
  errors: ['not_found'],
  handle: async (context) => {
    const { client, asked, interaction } = await loadConsentRequest(context);
    const { services, who } = context;
    const { broker } = services;
    const redirectUri = String(interaction.params.redirect_uri ?? '');
    return json(200, {
      client: {
        id: client.clientId,
        name: asked.client_name,
        published_by: client.clientId.startsWith('https:') ? new URL(client.clientId).host : null,
        redirect_host: asked.redirect_host,
        redirect_uri: redirectUri,
      },
      scopes: asked.scope.split(' '),
      owner: { id: who.owner.id, email: who.owner.email, role: who.role },
      ...(await organisationsOf(broker, who)),
      lasts_days: AUTHORISATION_SECONDS / 86_400,
      decided: interaction.result === undefined ? null : interaction.returnTo,
      offer: await consentOffer(broker, who.owner, { ...asked, redirectUri }),
    });
  },
});

const Decision = z.discriminatedUnion('allow', [
  z.strictObject({ allow: z.literal(false) }),
  z.strictObject({
    allow: z.literal(true),
    agent: z.string().max(64).optional().describe('an agent that an MCP client was authorised as before'),
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
      .describe('the scopes of its tokens, a subset of the requested ones; all of those when omitted'),
  }),
]);

/** POST /oauth/consent/{uid}/decision: only an admin may authorise a client; every owner may refuse. */
export const consentDecision = route({
  method: 'POST',
  path: `${OAUTH_PATHS.consent}/{uid}/decision`,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.consent.decide',
  summary: 'Authorises an MCP client as an agent, or rejects it.',
  params: PARAMS,
  body: Decision,
  answers: {
    200: {
      description: 'Where to send the browser.',
      schema: z.object({ location: z.url(), agent_id: z.string().nullable() }),
    },
  },
  errors: ['invalid_request', 'forbidden', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const requested = await loadConsentRequest(context);
    const { asked } = requested;
    if (!body.allow) {
      const location = await refuseMcpClient(services.broker, asked, (tx) => reportConsentRefused(context, tx));
      return json(200, { location, agent_id: null });
    }
    if (who.role !== 'admin')
      throw new Refusal('forbidden', `Only an admin lets new clients in; your role is ${who.role}. Ask an admin.`);
    if (body.owner_id !== undefined && body.owner_id !== who.owner.id)
      throw new Refusal(
        'conflict',
        `You are ${who.owner.email} by now. Load this page again to see what you decide on.`,
      );
    const { agent, name, policy, grants, scopes } = body;
    const allowed = { agent, name, policy, grants, scopes };
    const { location, agentId } = await consentToMcpClient(
      services,
      changingOwner(context),
      { asked, allowed },
      (tx, { id, given }) => storeConsentGrant(context, tx, requested, { id, given }),
    );
    return json(200, { location, agent_id: agentId });
  },
});
