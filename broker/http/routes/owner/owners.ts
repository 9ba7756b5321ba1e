/** The owners of an organisation and their roles. */
import { z } from 'zod';
import { organisationNamed } from '../../../admin/organisations/organisations.ts';
import { makeOwnerLink } from '../../../admin/organisations/owner-link.ts';
import {
  addOwner as add,
  listFormer,
  listOwners,
  passkeysByOwner,
  removeOwner as remove,
} from '../../../admin/organisations/owners.ts';
import type { ChangingOwner } from '../../../audit/record-change.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { Refusal } from '../../errors.ts';
import { changingOwner } from '../../owner-change.ts';
import { expectReauthenticated } from '../../reauthenticated.ts';
import { instant, json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const Owner = z
  .object({ id: z.guid(), email: z.string(), role: z.enum(['admin', 'approver', 'viewer']) })
  .meta({ id: 'Owner' });
const OwnerListed = Owner.extend({
  origin: z.enum(['first_start', 'governance', 'added']),
  created_at: z.iso.datetime(),
  identity_known: z.boolean().describe('whether an account of the identity provider belongs to this owner already'),
  role_by_groups: z
    .boolean()
    .describe('whether the role follows the groups of the identity provider (OIDC_ROLES), until an admin gives one'),
  last_sign_in_at: z.iso
    .datetime()
    .nullable()
    .describe('by a sign-in link, a passkey or the identity provider; null: never'),
  passkeys: z
    .array(
      z.object({
        device_name: z.string(),
        created_at: z.iso.datetime(),
        last_used_at: z.iso.datetime().nullable(),
        status: z.enum(['active', 'disabled']),
      }),
    )
    .nullable()
    .describe('with which this owner signs in and decides; null: only admins read that'),
}).meta({ id: 'OwnerListed' });

/** GET /owner/owners */
export const ownerOwners = route({
  method: 'GET',
  path: '/owner/owners',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.owners.list',
  summary: "The organisation's owners.",
  answers: {
    200: {
      description: 'All owners, oldest first, and the addresses of removed ones.',
      schema: z.object({
        owners: z.array(OwnerListed),
        former: z
          .array(z.object({ id: z.guid(), email: z.string(), removed_at: z.iso.datetime() }))
          .describe('removed owners, whose ids are in what they decided and changed'),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const owners = await listOwners(broker.store.db, who.organisationId);
    const former = await listFormer(broker.store.db, who.organisationId);
    const passkeys = who.role === 'admin' ? await passkeysByOwner(broker.store.db, who.organisationId) : undefined;
    return json(200, {
      owners: owners.map(({ id, email, role, origin, created_at, oidc_subject, role_by_groups, last_sign_in_at }) => ({
        id,
        email,
        role,
        origin,
        created_at: new Date(created_at).toISOString(),
        // Whether an account of the identity provider is linked to this owner.
        identity_known: oidc_subject !== null,
        role_by_groups: role_by_groups === 1,
        last_sign_in_at: instant(last_sign_in_at),
        passkeys: passkeys
          ? (passkeys.get(id) ?? []).map(({ device_name, created_at: made, last_used_at, status }) => ({
              device_name,
              created_at: new Date(made).toISOString(),
              last_used_at: instant(last_used_at),
              status: status === 'active' ? ('active' as const) : ('disabled' as const),
            }))
          : null,
      })),
      former: former.map(({ id, email, removed_at }) => ({
        id,
        email,
        removed_at: new Date(removed_at).toISOString(),
      })),
    });
  },
});

const NewOwner = z.strictObject({
  email: z.email('write an e-mail address such as ann@acme.example').max(254),
  role: z.enum(['admin', 'approver', 'viewer']),
  organisation: z
    .string()
    .max(100)
    .optional()
    .describe("its id or name, when there are several; for the operator's use"),
  forget_identity: z
    .boolean()
    .default(false)
    .describe(
      'assign this owner to the next person who signs in at the identity provider with this verified address; existing sessions, passkeys and devices end',
    ),
});

/** POST /owner/owners: adds an owner, or changes a role; for admins and the operator. */
export const addOwner = route({
  method: 'POST',
  path: '/owner/owners',
  auth: 'owner_or_local',
  role: 'admin',
  capability: 'owner.owners.add',
  summary: 'Adds an owner, or changes the role of one.',
  body: NewOwner,
  answers: { 200: { description: 'The owner.', schema: Owner } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const by = await changing(context, body.organisation);
    const added = { email: body.email, role: body.role, forgetsIdentity: body.forget_identity };
    const { id, email, role } = await add(services, by, added);
    return json(200, { id, email, role });
  },
});

/** Returns the author of the change and the organisation: an admin's own one, or the one that the operator names. */
async function changing(context: Context<'owner_or_local', unknown>, name: string | undefined): Promise<ChangingOwner> {
  const { who, correlationId, services } = context;
  if (who.kind === 'local') {
    const owner = { id: 'operator', organisation_id: await organisationNamed(services.broker, name) };
    return { owner, how: 'local', correlationId };
  }
  if (name !== undefined)
    throw new Refusal('invalid_request', 'organisation: leave it out; owners are added to your own organisation.');
  return changingOwner({ who, request: context.request, correlationId });
}

/** DELETE /owner/owners/{id}: in force from that owner's next request. */
export const removeOwner = route({
  method: 'DELETE',
  path: '/owner/owners/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.owners.remove',
  summary: 'Removes an owner, with the sessions and passkeys of that owner.',
  answers: {
    200: {
      description:
        'The owner was removed; revoked and expired agents of that owner, and MCP clients that they authorised, now belong to the requester.',
      schema: z.object({ id: z.guid(), removed: z.literal(true) }),
    },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await remove(context.services, changingOwner(context), id);
    return json(200, { removed: true, id });
  },
});

/** POST /owner/owners/{id}/link: for a colleague who cannot run a command on the broker's machine. */
export const linkOfOwner = route({
  method: 'POST',
  path: '/owner/owners/{id}/link',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'owner-links', perMinute: 20, per: 'address' },
  capability: 'owner.owners.link',
  summary: 'A link that signs an owner in, once, within 15 minutes; on record.',
  description: 'By an admin who signed in within the last 10 minutes.',
  params: { id: z.guid().describe('the id of the owner') },
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description: 'The link. The person who opens it first is signed in as that owner.',
      schema: z.object({ url: z.url(), expires_at: z.iso.datetime(), email: z.string() }),
    },
  },
  errors: [
    'invalid_request',
    'not_found',
    'forbidden',
    'reauthentication_required',
    'rate_limited',
    'audit_unavailable',
  ],
  handle: async (context) => {
    const { provider, broker } = context.services;
    if (provider)
      throw new Refusal(
        'forbidden',
        `Owners sign in at ${provider.host} here; links are switched off. Send them ${broker.baseUrl}/console/sign-in.`,
      );
    // Needed because a session that begins by the link counts as a recent sign-in.
    await expectReauthenticated(context, 'Making a sign-in link');
    const made = await makeOwnerLink(context.services, changingOwner(context), storedUuid(context.params.id));
    return json(200, { url: made.url, expires_at: made.expires_at, email: made.owner.email });
  },
});
