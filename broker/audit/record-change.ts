/** Records an owner's change in the transaction that makes it. */

import { correlationId, uuidv7 } from '../crypto/ids.ts';
import type { Instant, JsonObject } from '../policy/facts.ts';
import type { SessionMarks } from '../store/ended-sessions.ts';
import { lockOrganisation } from '../store/governance.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { checkAuthorRole } from './author-role.ts';
import { type ApprovalChanges, ownersChangeIn } from './changes.ts';
import { eventRow } from './event-row.ts';
import type { OwnersChange } from './receipt.ts';
import type { Recording } from './recorder.ts';

export type Change = {
  /** What happened, such as `policy_changed`: the `reason` of the event's row. */
  reason: string;
  /** The owner's text; in the row, not in the receipt. */
  detail?: string | null;
  /** The agent, platform, scope or connection that the change is about, if it is about one of these. */
  agent?: { id: string; agent_id: string };
  platform?: string;
  scope?: string;
  connection?: string;
  /** The held call that the change is about. */
  approval?: string;
  /** The time of the row; by default now. */
  at?: Instant;
};

export type ChangingOwner = {
  /** `role`: of the owner or pipeline when the request was authenticated. */
  owner: { id: string; organisation_id: string; role?: OwnerTable['role'] };
  /** The session in which an owner makes the change. */
  session?: SessionMarks;
  how: OwnersChange['how'];
  correlationId: string;
};

/** Dependencies of making a change. */
export type Changing = Recording & { changes: ApprovalChanges };

/** The operator as the author of changes made by the configuration at the start of the process. */
export const operatorAtStart = (organisationId: string): ChangingOwner => ({
  owner: { id: 'operator', organisation_id: organisationId },
  how: 'start',
  correlationId: correlationId(),
});

/** The broker itself as the author, for changes by a rule of the organisation or of the broker. */
export const byBroker = (organisationId: string, correlation = correlationId()): ChangingOwner => ({
  owner: { id: 'broker', organisation_id: organisationId },
  how: 'broker',
  correlationId: correlation,
});

/**
 * Makes a change and records it as an event, in one transaction; `signRow` decides which events get a receipt. `make` must write only
 * through the given transaction; its result is returned. An error thrown by `make` rolls everything back and is rethrown;
 * `rollback(reason)` rolls back as well, and is returned. `note` adds facts to the audit row and the receipt (names, versions; never a
 * secret). `auditId` is the id of the event's row.
 *
 * @throws AuditUnavailable when the event could not be recorded: then the change is not made
 */
export async function recordChange<Made>(
  { broker, recorder, changes }: Changing,
  { owner, how, correlationId }: ChangingOwner,
  { reason, detail, agent, platform, scope, connection, approval, at: now = broker.clock() }: Change,
  make: (tx: Db, note: (facts: JsonObject) => void, auditId: string) => Promise<Made>,
): Promise<Made> {
  const row = eventRow({
    auditId: uuidv7(now),
    correlationId,
    createdAt: now,
    instanceId: broker.instanceId,
    organisationId: owner.organisation_id,
    agent,
    reason,
    detail,
    platform,
    scope,
    connectionId: connection ?? null,
    approvalId: approval ?? null,
  });
  const ref = ownersChangeIn(owner.organisation_id);
  let made: { value: Made } | undefined;
  const recorded = await recorder.record<undefined, { error: unknown } | { answer: Made }>({
    row,
    value: undefined,
    isAgents: how === 'agent',
    together: async (tx) => {
      const facts: JsonObject = {};
      try {
        made = { value: await make(tx, (more) => void Object.assign(facts, more), row.id) };
      } catch (error) {
        return rollback({ error });
      }
      if (made.value instanceof RolledBack) return rollback({ answer: made.value });
      await changes.announce(tx, ref);
      return { flags: { change: { ...facts, by: owner.id, how } } };
    },
  });
  if (recorded instanceof RolledBack) {
    if ('error' in recorded.reason) throw recorded.reason.error;
    return recorded.reason.answer;
  }
  changes.tell(ref);
  return (made as { value: Made }).value;
}

/**
 * As `recordChange`, serialised with all such changes of the organisation and with applies of governance files, and refused if the author has
 * lost the role meanwhile, or the session was ended.
 *
 * @throws AuthorNotAllowed, and then the change is not made
 */
export const recordInTurn: typeof recordChange = (services, by, change, make) =>
  recordChange(services, by, change, async (tx, note, auditId) => {
    await lockOrganisation(tx, by.owner.organisation_id);
    await checkAuthorRole(tx, by);
    return await make(tx, note, auditId);
  });
