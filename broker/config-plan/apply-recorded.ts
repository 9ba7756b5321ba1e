/** Applying a governance file: the one way in which the broker does it, on record whoever asks. */

import type { Changing } from '../audit/record-change.ts';
import { type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Governance } from '../config-file/governance.ts';
import type { Resolved } from '../config-file/secrets.ts';
import { type ApplyOptions, type ApplyResult, applyFile, isChange } from './apply.ts';
import type { Change } from './planning.ts';

/** Rolls the transaction back when there is nothing to record: the file was refused, or it changes nothing. */
class NothingToRecord extends Error {
  readonly result: ApplyResult;
  constructor(result: ApplyResult) {
    super('nothing was changed');
    this.result = result;
  }
}

/**
 * Plans and makes the changes in one transaction together with the audit row `governance_applied`, its receipt and the
 * list of changes in both. A file that is refused, or that says what is there already, leaves no row.
 *
 * @param by who applies; of the process itself as it starts, `operatorAtStart`
 * @param detail the audit row's own words, such as the command; not in the receipt
 * @throws UnknownOrganisation; AuditUnavailable when nothing could be recorded, and then nothing was changed
 */
export async function applyGovernance(
  services: Changing,
  by: ChangingOwner,
  governance: Governance,
  resolved: Resolved,
  { detail, ...options }: ApplyOptions & { detail?: string } = {},
): Promise<ApplyResult> {
  const { store, vault, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const change = { reason: 'governance_applied', detail: detail ?? null };
  const applying = { store, vault, organisationId, governance, resolved, clock, options };
  try {
    const applied = await applyFile(applying, (make) =>
      recordChange(services, by, change, async (db, note) => {
        const result = await make(db);
        if (!isChange(result)) throw new NothingToRecord(result);
        note(listed(result.plan.changes, result.adopted));
        for (const ref of result.ended) await services.changes.announce(db, ref);
        return result;
      }),
    );
    if (applied.ok) for (const ref of applied.ended) services.changes.tell(ref);
    return applied;
  } catch (error) {
    if (error instanceof NothingToRecord) return error.result;
    throw error;
  }
}

const MOST_LISTED = 50;

/** What goes on record and into the receipt: `update policy careful`; of an owner not the address. */
function listed(changes: readonly Change[], adopted: number) {
  const lines = changes.map(({ action, kind, name }) => `${action} ${kind}${kind === 'owner' ? '' : ` ${name}`}`);
  return {
    changes: lines.slice(0, MOST_LISTED),
    ...(lines.length > MOST_LISTED && { more: lines.length - MOST_LISTED }),
    ...(adopted > 0 && { adopted }),
  };
}
