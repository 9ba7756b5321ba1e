/** Registrations as owners see and decide them, by their id or by their token. */

import { z } from 'zod';
import { choosePolicy, knownScopes } from '../admin/new-agent.ts';
import { registrationStatusAt } from '../admin/registration.ts';
import {
  type Approving,
  approveRegistration,
  DecidedBefore,
  mayDecide,
  narrowed,
  rejectRegistration,
} from '../admin/registration-decision.ts';
import { makeKeyPair } from '../admin/registration-key.ts';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { present } from '../policy/present.ts';
import { findLiveAgentNamed } from '../store/agents.ts';
import { findRegistration, type ShownRegistration } from '../store/registrations.ts';
import type { OwnerTable, RegistrationTable, ScopesOn as Scopes } from '../store/schema.ts';
import { Refusal } from './errors.ts';
import { instant } from './instant.ts';
import { ownerChange } from './owner-change.ts';
import { AgentName, REGISTRATION_STATUSES, ScopesOn, ScopesOnPlatforms } from './registering.ts';
import { json, type Reply } from './reply.ts';
import type { Context } from './route.ts';

export const Registration = z
  .object({
    id: z.guid(),
    status: z.enum(REGISTRATION_STATUSES),
    agent_id: z.string().describe('of the agent that an approval makes of it'),
    agent_name: z.string().describe("the agent's own words, like the description"),
    agent_description: z.string().nullable(),
    owner_id: z.guid().describe('the owner who was asked, and answers for the agent'),
    owner_email: z.string().nullable(),
    requested_scopes: ScopesOn,
    granted: ScopesOn.nullable().describe('of an approval: those that were granted'),
    source: z.string().describe('the address that it came from'),
    may_decide: z.boolean().describe('whether whoever asks for this may decide it'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().describe('until then it can be decided'),
    expires_in_seconds: z.int().nullable().describe('null: it waits no longer'),
    decided_at: z.iso.datetime().nullable(),
    decided_by: z.guid().nullable(),
    decided_by_email: z.string().nullable(),
    claim_until: z.iso.datetime().nullable().describe('until then the agent can collect its key'),
    claimed_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Registration' });

export const ApprovedRegistration = Registration.extend({
  dropped: ScopesOn.describe('scopes that no platform of the organisation has, and that were not granted'),
}).meta({ id: 'ApprovedRegistration' });

/** With what an approval would make of it now, for whoever decides. */
export const WholeRegistration = Registration.extend({
  unknown_scopes: ScopesOn.describe('of those that were asked for: scopes that no platform of the organisation has'),
  policy: z
    .object({ id: z.guid(), name: z.string(), version: z.int() })
    .nullable()
    .describe('the one that the agent would be under; null: there is no default one, and every call would be denied'),
  namesake: z.string().nullable().describe('the agent id of whom is called so already: approve with another name'),
}).meta({ id: 'WholeRegistration' });

export const registrationShown = (
  one: ShownRegistration,
  owner: OwnerTable,
  now: number,
): z.output<typeof Registration> => ({
  id: one.id,
  status: registrationStatusAt(one, now),
  agent_id: one.agent_id,
  agent_name: one.agent_name,
  agent_description: one.agent_description,
  owner_id: one.owner_id,
  owner_email: one.owner_email,
  requested_scopes: JSON.parse(one.requested_scopes),
  granted: one.granted === null ? null : JSON.parse(one.granted),
  source: one.source,
  may_decide: registrationStatusAt(one, now) === 'pending' && mayDecide(owner, one),
  created_at: new Date(one.created_at).toISOString(),
  expires_at: new Date(one.expires_at).toISOString(),
  expires_in_seconds: registrationStatusAt(one, now) === 'pending' ? Math.ceil((one.expires_at - now) / 1000) : null,
  decided_at: instant(one.decided_at),
  decided_by: one.decided_by,
  decided_by_email: one.decided_by_email,
  claim_until: instant(one.claim_until),
  claimed_at: instant(one.claimed_at),
});

export async function wholeRegistration(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  one: ShownRegistration,
  owner: OwnerTable,
): Promise<z.output<typeof WholeRegistration>> {
  const shown = registrationShown(one, owner, clock());
  const policy = await choosePolicy(db, one.organisation_id, undefined);
  const namesake = await findLiveAgentNamed(db, one.organisation_id, one.agent_name);
  return {
    ...shown,
    unknown_scopes: (await knownScopes(db, one.organisation_id, shown.requested_scopes)).out,
    policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
    namesake: namesake?.agent_id ?? null,
  };
}

export const ApprovingBody = z.strictObject({
  scopes: ScopesOnPlatforms.optional().describe('of those that were asked for; all of them when left out'),
  policy: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('its id or its name; the default one when left out. Another one is chosen by admins'),
  name: AgentName.optional().describe('what to call the agent, if not as it asked for'),
});

/** What both ways to decide may refuse. */
export const DECISION_ERRORS = [
  'invalid_request',
  'forbidden',
  'not_found',
  'already_decided',
  'conflict',
  'request_expired',
  'audit_unavailable',
] as const;

type Word = { status: 'rejected' } | ({ status: 'approved' } & Approving);

/** Decides, and answers the registration as it is then. Of any number of owners at the same instant one decides. */
export async function decideAs(context: Context<'owner'>, found: RegistrationTable, word: Word): Promise<Reply> {
  const { services, who } = context;
  const { broker, changes } = services;
  // Those at nobody are nobody's to decide, and answered like those at somebody else.
  if (!mayDecide(who.owner, found))
    throw new Refusal('forbidden', 'Only the owner who was asked, or an admin of that organisation, decides this.');
  refuseDecided(found, broker.clock());
  const ref = { organisation_id: found.organisation_id, id: found.id };
  let dropped: Scopes[] | undefined;
  try {
    const scopes = word.status === 'approved' ? narrowed(found, word.scopes) : [];
    const made = word.status === 'approved' ? { id: uuidv4(), ...(await makeKeyPair()) } : undefined;
    const change = {
      reason: `registration_${word.status}`,
      detail: found.agent_name,
      ...(made && { agent: { id: made.id, agent_id: found.agent_id } }),
    };
    await ownerChange(context, change, async (db, note, auditId) => {
      const deciding = { registration: found, by: who.owner, auditId, note };
      if (word.status === 'approved')
        ({ dropped } = await approveRegistration(broker, db, deciding, { ...word, scopes }, present(made, 'key pair')));
      else await rejectRegistration(broker, db, deciding);
      await changes.announce(db, ref);
    });
  } catch (error) {
    if (!(error instanceof DecidedBefore)) throw error;
    const after = await findRegistration(broker.store.db, found.organisation_id, found.id);
    if (after) refuseDecided(after, broker.clock());
    throw expired();
  }
  changes.tell(ref);
  const now = present(await findRegistration(broker.store.db, found.organisation_id, found.id), 'registration');
  return json(200, { ...registrationShown(now, who.owner, broker.clock()), ...(dropped && { dropped }) });
}

const expired = () =>
  new Refusal('request_expired', 'Nobody decided this registration in time; the agent has to register again.');

function refuseDecided(found: RegistrationTable, now: number): void {
  const status = registrationStatusAt(found, now);
  if (status === 'expired') throw expired();
  if (status !== 'pending')
    throw new Refusal('already_decided', `This registration was ${status} already.`, { extra: { status } });
}
