/** The people of an organisation: who is one, with which role. */
import { z } from 'zod';
import { recordChange } from '../../../audit/record-change.ts';
import type { Broker } from '../../../broker.ts';
import { UUID_PATTERN, uuidv4 } from '../../../crypto/ids.ts';
import { listAgents, updateAgent } from '../../../store/agents.ts';
import { lockOrganisation } from '../../../store/governance.ts';
import {
  deleteOwner,
  foldEmail,
  forgetIdentity,
  listOrganisations,
  listOwners,
  putOwner,
} from '../../../store/organisations.ts';
import { isRowFault } from '../../../store/row-fault.ts';
import type { OwnerTable } from '../../../store/schema.ts';
import type { Db } from '../../../store/store.ts';
import { Refusal } from '../../errors.ts';
import { howOf, ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const Owner = z
  .object({ id: z.guid(), email: z.string(), role: z.enum(['admin', 'approver', 'viewer']) })
  .meta({ id: 'Owner' });
const OwnerListed = Owner.extend({
  origin: z.enum(['first_start', 'governance', 'added']),
  created_at: z.iso.datetime(),
  identity_known: z.boolean().describe('whether an account of the identity provider belongs to this owner already'),
}).meta({ id: 'OwnerListed' });

/** GET /owner/owners */
export const ownerOwners = route({
  method: 'GET',
  path: '/owner/owners',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.owners.list',
  summary: "The organisation's owners.",
  answers: { 200: { description: 'All owners, oldest first.', schema: z.object({ owners: z.array(OwnerListed) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const owners = await listOwners(broker.store.db, who.organisationId);
    return json(200, {
      owners: owners.map(({ id, email, role, origin, created_at, oidc_subject }) => ({
        id,
        email,
        role,
        origin,
        created_at: new Date(created_at).toISOString(),
        // Whether an account of the identity provider belongs to this owner already.
        identity_known: oidc_subject !== null,
      })),
    });
  },
});

const NewOwner = z.strictObject({
  email: z.email('write an e-mail address such as ann@acme.example').max(254),
  role: z.enum(['admin', 'approver', 'viewer']),
  organisation: z.string().max(64).optional().describe("its name, when there are several; for the operator's use"),
  forget_identity: z
    .boolean()
    .default(false)
    .describe('let whoever next signs in at the identity provider with this verified address be this owner'),
});

/** POST /owner/owners: adds an owner, or changes a role; for admins, and for whoever runs the broker. */
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
    const { body } = context;
    const by = await changing(context, body.organisation);
    const email = foldEmail(body.email);
    const { db } = context.services.broker.store;
    const known = (await listOwners(db, by.owner.organisation_id)).find((owner) => owner.email === email);
    const forgets = body.forget_identity && known !== undefined && known.oidc_subject !== null;
    if (known?.role === body.role && !forgets) return json(200, shown(known));
    const reason = known ? 'owner_changed' : 'owner_added';
    const owner = await recordChange(context.services, by, { reason, detail: email }, async (tx, note) => {
      const before = await ownersNow(tx, by.owner.organisation_id);
      const now = before.find((one) => one.email === email);
      if ((now === undefined) !== (known === undefined))
        throw new Refusal(
          'conflict',
          'Concurrent update: another request changed this owner first. Nothing was changed; reload and retry.',
        );
      if (now && body.role !== 'admin') refuseLastAdmin(before, now);
      const put = await putOwner(tx, {
        organisation_id: by.owner.organisation_id,
        id: uuidv4(),
        email,
        role: body.role,
        origin: 'added',
        created_at: context.services.broker.clock(),
      });
      if (forgets) await forgetIdentity(tx, put);
      note({ owner: put.id, role: put.role, ...(forgets && { identity: 'forgotten' }) });
      return put;
    });
    return json(200, shown(owner));
  },
});

const shown = ({ id, email, role }: OwnerTable) => ({ id, email, role });

/** Who makes the change, in which organisation: an admin in the own one, the operator in the one that is named. */
async function changing(context: Context<'owner_or_local', unknown>, name: string | undefined) {
  const { who, correlationId, services } = context;
  if (who.kind === 'local') {
    const organisation = await organisationOf(services.broker, name);
    return { owner: { id: 'operator', organisation_id: organisation }, how: 'local' as const, correlationId };
  }
  if (name !== undefined)
    throw new Refusal('invalid_request', 'organisation: leave it out; owners are added to your own organisation.');
  return { owner: who.owner, how: howOf(context), correlationId };
}

async function organisationOf({ store }: Broker, name: string | undefined): Promise<string> {
  const organisations = await listOrganisations(store.db);
  const chosen = name === undefined ? organisations[0] : organisations.find((one) => one.name === name);
  if (!chosen) throw new Refusal('not_found', 'There is no such organisation.');
  if (name === undefined && organisations.length > 1)
    throw new Refusal('invalid_request', 'organisation: there are several; say which.');
  return chosen.id;
}

/** The owners, who stay as they are until the transaction ends: of two admins who remove each other, one is left. */
async function ownersNow(db: Db, organisationId: string): Promise<OwnerTable[]> {
  await lockOrganisation(db, organisationId);
  return await listOwners(db, organisationId);
}

function refuseLastAdmin(owners: readonly OwnerTable[], owner: OwnerTable): void {
  if (owner.role === 'admin' && owners.every((one) => one.id === owner.id || one.role !== 'admin'))
    throw new Refusal(
      'conflict',
      `${owner.email} is the last admin: nobody could change anything any more. Make somebody else an admin first.`,
    );
}

const MOST_NAMED = 10;

/** DELETE /owner/owners/{id}: in force at the very next request of that owner. */
export const removeOwner = route({
  method: 'DELETE',
  path: '/owner/owners/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.owners.remove',
  summary: 'Removes an owner, with the sessions and passkeys of that owner.',
  answers: {
    200: {
      description: 'The owner is gone; revoked agents of that owner are now of the one who asked.',
      schema: z.object({ id: z.guid(), removed: z.literal(true) }),
    },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, params } = context;
    const { organisationId } = who;
    const id = UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';
    const known = (await listOwners(services.broker.store.db, organisationId)).find((owner) => owner.id === id);
    if (!known) throw new Refusal('not_found', 'The organisation has no such owner.');
    if (id === who.owner.id)
      throw new Refusal('conflict', 'You cannot remove yourself. Let another admin of the organisation do it.');
    await ownerChange(context, { reason: 'owner_removed', detail: known.email }, async (db, note) => {
      const owners = await ownersNow(db, organisationId);
      const owner = owners.find((one) => one.id === id);
      if (!owner) throw new Refusal('not_found', 'The organisation has no such owner.');
      refuseLastAdmin(owners, owner);
      const agents = (await listAgents(db, organisationId, { deleted: true })).filter((one) => one.owner_id === id);
      const live = agents.filter(({ status }) => status !== 'revoked' && status !== 'deleted');
      if (live.length > 0) {
        const names = live.slice(0, MOST_NAMED).map(({ name, agent_id }) => `${name} (${agent_id})`);
        const more = live.length > MOST_NAMED ? ` and ${live.length - MOST_NAMED} more` : '';
        throw new Refusal(
          'conflict',
          `${owner.email} answers for the agents ${names.join(', ')}${more}. Revoke them or give them another owner first.`,
        );
      }
      for (const agent of agents) await updateAgent(db, organisationId, agent.id, { owner_id: who.owner.id });
      await deleteOwner(db, organisationId, id).catch((error) => {
        if (!isRowFault(error)) throw error;
        throw new Refusal(
          'conflict',
          `Concurrent update: something was assigned to ${owner.email} meanwhile. Nothing was changed; reload and retry.`,
        );
      });
      note({ owner: id, role: owner.role, agents_passed_on: agents.length });
    });
    return json(200, { removed: true, id });
  },
});
