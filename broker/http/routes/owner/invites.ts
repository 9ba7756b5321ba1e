/** Invites: an admin describes an agent, and whoever holds the secret binds its key. */
import { z } from 'zod';
import { createInvite, listInvites, type ReadInvite, removeInvite } from '../../../admin/agents/invites.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { Granted, GrantedShown, grantedShown } from '../../granted-scopes.ts';
import { changingOwner } from '../../owner-change.ts';
import { AgentName } from '../../registration-request.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const Invite = z
  .object({
    id: z.guid(),
    status: z.enum(['open', 'claimed', 'expired']),
    agent_name: z.string(),
    policy_id: z.guid().nullable(),
    grants: GrantedShown,
    owner_id: z.guid().describe('who invited, and answers for the agent'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    claimed_at: z.iso.datetime().nullable(),
    agent: z.guid().nullable().describe('the uuid of the agent that it became'),
  })
  .meta({ id: 'Invite' });

const NewInvite = Invite.extend({
  bind_secret: z.string().describe('for the agent; nobody can show it again'),
  bind_url: z.url().describe('where it is exchanged'),
}).meta({ id: 'NewInvite' });

const shown = (invite: ReadInvite): z.output<typeof Invite> => ({
  id: invite.id,
  status: invite.status,
  agent_name: invite.agent_name,
  policy_id: invite.policy_id,
  grants: grantedShown(invite.grants),
  owner_id: invite.owner_id,
  created_at: new Date(invite.created_at).toISOString(),
  expires_at: new Date(invite.expires_at).toISOString(),
  claimed_at: instant(invite.claimed_at),
  agent: invite.agent_id,
});

/** GET /owner/invites: newest first; used and expired ones are listed for 30 days. */
export const ownerInvites = route({
  method: 'GET',
  path: '/owner/invites',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.invites.list',
  summary: "The organisation's invites, newest first, without their secrets.",
  answers: { 200: { description: 'The invites.', schema: z.object({ invites: z.array(Invite) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { invites: (await listInvites(broker, who.organisationId)).map(shown) }),
});

/** POST /owner/invites: the inviting admin becomes the owner of the agent. */
export const inviteAgent = route({
  method: 'POST',
  path: '/owner/invites',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.invites.create',
  summary: 'Creates an invite: a secret that creates an agent with its own key, once, within seven days.',
  body: z.strictObject({
    agent_name: AgentName,
    policy: z.string().min(1).max(64).optional().describe('its id or its name; the default one when left out'),
    grants: Granted.optional().describe('what it may do; nothing when left out'),
  }),
  answers: { 200: { description: 'The invite.', schema: NewInvite } },
  errors: ['invalid_request', 'not_on_plan', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const inviting = {
      name: body.agent_name,
      grants: body.grants ?? [],
      ...(body.policy !== undefined && { policy: body.policy }),
    };
    const { invite, secret } = await createInvite(services, changingOwner(context), inviting);
    const bind_url = `${services.broker.baseUrl}/v1/invites/bind`;
    return json(200, { ...shown(invite), bind_secret: secret.reveal(), bind_url });
  },
});

/** DELETE /owner/invites/{id}: its secret is refused from then on. */
export const removeOwnerInvite = route({
  method: 'DELETE',
  path: '/owner/invites/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.invites.remove',
  summary: 'Withdraws an unused invite.',
  params: { id: z.guid().describe('the id of the invite') },
  answers: {
    200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await removeInvite(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});
