/** A change that an owner makes: recorded in the transaction that makes it, so that neither is without the other. */

import { correlationId, uuidv7 } from '../crypto/ids.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { Db } from '../store/store.ts';
import { AuditUnavailable } from './audit-unavailable.ts';
import type { ApprovalChanges } from './changes.ts';
import { ownersChangeIn } from './changes.ts';
import type { OwnersChange } from './receipt.ts';
import type { Recording } from './record.ts';
import { beginRow, noteFlags } from './row.ts';

export type Change = {
  /** What happened, such as `policy_changed`: the `reason` of the event's row. */
  reason: string;
  /** The owner's own words; on record, not in the receipt. */
  detail?: string | null;
  /** What it is about, where it is one of these. */
  agent?: { id: string; agent_id: string };
  platform?: string;
  scope?: string;
  connection?: string;
};

export type ChangingOwner = {
  owner: { id: string; organisation_id: string };
  how: OwnersChange['how'];
  correlationId: string;
};

/** What whoever changes something takes of the process. */
export type Changing = Recording & { changes: ApprovalChanges };

/** Whoever runs the broker, by what the process was started with. */
export const operatorAtStart = (organisationId: string): ChangingOwner => ({
  owner: { id: 'operator', organisation_id: organisationId },
  how: 'start',
  correlationId: correlationId(),
});

/**
 * Makes a change and records it as an event, in one transaction; `signRow` says which events get a receipt. `make` writes with the database that it is
 * given and with no other; what it answers comes out, what it throws undoes everything and comes out as it is. `note` adds
 * facts to what is on record and in the receipt (names, versions; never a secret). `auditId` is the event's row.
 *
 * @throws AuditUnavailable when the event could not be recorded: then the change is not made
 */
export async function recordChange<Made>(
  { broker, recorder, changes }: Changing,
  { owner, how, correlationId }: ChangingOwner,
  { reason, detail, agent, platform, scope, connection }: Change,
  make: (db: Db, note: (facts: JsonObject) => void, auditId: string) => Promise<Made>,
): Promise<Made> {
  const about = { organisation_id: owner.organisation_id, id: agent?.id ?? null, agent_id: agent?.agent_id ?? null };
  const row = beginRow(
    { agent: about, sessionId: null },
    { ...(platform !== undefined && { platform }), ...(scope !== undefined && { scope }) },
    { auditId: uuidv7(broker.clock()), correlationId },
    broker,
  );
  row.kind = 'event';
  row.reason = reason;
  row.detail = detail ?? null;
  row.connection_id = connection ?? null;
  const ref = ownersChangeIn(owner.organisation_id);
  let made: { value: Made } | undefined;
  let refusal: { error: unknown } | undefined;
  try {
    await recorder.finishWith(row, undefined, async (db) => {
      const facts: JsonObject = {};
      try {
        made = { value: await make(db, (more) => void Object.assign(facts, more), row.id) };
      } catch (error) {
        refusal = { error };
        throw error;
      }
      noteFlags(row, { change: { ...facts, by: owner.id, how } });
      await changes.announce(db, ref);
    });
  } catch (error) {
    if (refusal && error instanceof AuditUnavailable) throw refusal.error;
    throw error;
  }
  changes.tell(ref);
  return made!.value;
}
