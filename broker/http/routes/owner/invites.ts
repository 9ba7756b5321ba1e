/** Invites: an admin describes an agent, and whoever holds the secret brings its key. */
import { z } from 'zod';
import { inviteStatusAt, makeInvite } from '../../../admin/invites.ts';
import { AgentRefused } from '../../../admin/refused.ts';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { listInvites, removeInvite } from '../../../store/invites.ts';
import type { InviteTable } from '../../../store/schema.ts';
import { Refusal } from '../../errors.ts';
import { ownerChange } from '../../owner-change.ts';
import { AgentName, ScopesOn, ScopesOnPlatforms } from '../../registering.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Invite = z
  .object({
    id: z.guid(),
    status: z.enum(['open', 'claimed', 'expired']),
    agent_name: z.string(),
    policy_id: z.guid().nullable(),
    grants: ScopesOn,
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

const shown = (invite: InviteTable, now: number): z.output<typeof Invite> => ({
  id: invite.id,
  status: inviteStatusAt(invite, now),
  agent_name: invite.agent_name,
  policy_id: invite.policy_id,
  grants: JSON.parse(invite.grants),
  owner_id: invite.owner_id,
  created_at: new Date(invite.created_at).toISOString(),
  expires_at: new Date(invite.expires_at).toISOString(),
  claimed_at: invite.claimed_at === null ? null : new Date(invite.claimed_at).toISOString(),
  agent: invite.agent_id,
});

/** GET /owner/invites: newest first; those that are over stay for 30 days. */
export const ownerInvites = route({
  method: 'GET',
  path: '/owner/invites',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.invites.list',
  summary: "The organisation's invites, newest first, without their secrets.",
  answers: { 200: { description: 'The invites.', schema: z.object({ invites: z.array(Invite) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const invites = await listInvites(broker.store.db, who.organisationId);
    return json(200, { invites: invites.map((invite) => shown(invite, broker.clock())) });
  },
});

/** POST /owner/invites: the agent will be under whoever invites. */
export const inviteAgent = route({
  method: 'POST',
  path: '/owner/invites',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.invites.create',
  summary: 'A secret with which an agent comes to be, once, within seven days, with a key of its own.',
  body: z.strictObject({
    agent_name: AgentName,
    policy: z.string().min(1).max(64).optional().describe('its id or its name; the default one when left out'),
    grants: ScopesOnPlatforms.optional().describe('what it may do; nothing when left out'),
  }),
  answers: { 200: { description: 'The invite.', schema: NewInvite } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { broker } = services;
    const now = broker.clock();
    const inviting = {
      name: body.agent_name,
      grants: body.grants ?? [],
      ...(body.policy !== undefined && { policy: body.policy }),
    };
    try {
      const { invite, secret } = await ownerChange(
        context,
        { reason: 'invite_created', detail: body.agent_name },
        async (db, note) => {
          const made = await makeInvite(db, who.owner, inviting, now);
          note({ invite: made.invite.id, policy: made.invite.policy_id, grants: JSON.parse(made.invite.grants) });
          return made;
        },
      );
      const bind_url = `${broker.baseUrl}/v1/invites/bind`;
      return json(200, { ...shown(invite, now), bind_secret: secret.reveal(), bind_url });
    } catch (error) {
      if (error instanceof AgentRefused && error.code !== 'gone') throw new Refusal(error.code, error.message);
      throw error;
    }
  },
});

/** DELETE /owner/invites/{id}: its secret is good for nothing from then on. */
export const removeOwnerInvite = route({
  method: 'DELETE',
  path: '/owner/invites/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.invites.remove',
  summary: 'Takes an invite back that nobody has used.',
  params: { id: z.guid().describe('the id of the invite') },
  answers: {
    200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, params } = context;
    const id = UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';
    const known = (await listInvites(services.broker.store.db, who.organisationId)).find((one) => one.id === id);
    if (!known) throw new Refusal('not_found', 'The organisation has no such invite.');
    await ownerChange(context, { reason: 'invite_removed', detail: known.agent_name }, async (db, note) => {
      if (!(await removeInvite(db, who.organisationId, id)))
        throw new Refusal('conflict', 'This invite was used: there is an agent now. Revoke the agent instead.');
      note({ invite: id });
    });
    return json(200, { id, removed: true });
  },
});
