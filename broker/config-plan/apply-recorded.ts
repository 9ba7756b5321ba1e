/** Applies a governance file with an audit row: the only way in which the broker applies one, whoever requests it. */

import { endTokens, type FormerConnection } from '../admin/agents/end-tokens.ts';
import { listedChanges, MAX_LISTED } from '../admin/listed-changes.ts';
import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import type { Governance } from '../config-file/governance.ts';
import type { Resolved } from '../config-file/secrets.ts';
import { isEntitled } from '../entitlement.ts';
import { stopClicks } from '../notify/stop-clicks.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import { putGovernanceApply } from '../store/governance-applies.ts';
import { RolledBack } from '../store/transaction.ts';
import { keptChanges } from './applies.ts';
import { type ApplyOptions, type ApplyResult, applyFile } from './apply.ts';
import { type Change, rankOf } from './planning.ts';

export type Applying = Changing & { oauth: OAuthConnections };

/**
 * Plans and makes the changes in one transaction together with the audit row `governance_applied`, its receipt and the
 * list of changes in both, and stores what was in force before as a file. A refused file, and one without changes, leave no row.
 *
 * @param by who applies; for the process itself at its start, `operatorAtStart`
 * @param detail additional text of the audit row, such as the command; not in the receipt
 * @throws UnknownOrganisation; AuthorNotAllowed; ChangeRefused, as for `applyFile`; AuditUnavailable when nothing could be recorded, and then nothing was changed
 */
export async function applyGovernance(
  services: Applying & Uses<'config' | 'baseUrl' | 'vault' | 'outbound' | 'publicOutbound'>,
  by: ChangingOwner,
  governance: Governance,
  resolved: Resolved,
  { detail, ...options }: ApplyOptions & { detail?: string } = {},
): Promise<ApplyResult> {
  const { broker } = services;
  const { store, vault, clock } = broker;
  const { organisation_id: organisationId } = by.owner;
  const mayLimitRepos = isEntitled(broker, organisationId, 'repository_constraints');
  const hasAuditFolder = broker.config.auditFolder !== undefined;
  const whole = { ...options, mayLimitRepos, hasAuditFolder, madeBy: by.owner.id };
  const change = { reason: 'governance_applied', detail: detail ?? null };
  const applying = { store, vault, organisationId, governance, resolved, clock, options: whole };
  const applied = await applyFile(applying, (make, plannedAt) =>
    // The row has the time of the versions of rules that it makes, by which their author is found.
    recordInTurn(
      services,
      by,
      { ...change, ...(plannedAt !== undefined && { at: plannedAt }) },
      async (db, note, auditId) => {
        const result = await make(db);
        if (result instanceof RolledBack || !result.ok) return result;
        await putGovernanceApply(db, {
          organisation_id: organisationId,
          id: auditId,
          made_by: by.owner.id,
          how: by.how,
          detail: change.detail,
          change_count: result.plan.changes.length,
          changes: keptChanges(result.plan.changes),
          file_before: result.fileBefore,
          created_at: clock(),
        });
        note(listed(result.plan.changes, result.adopted));
        for (const ref of result.ended) await services.changes.announce(db, ref);
        return result;
      },
    ),
  );
  if (applied.ok) {
    for (const ref of applied.ended) services.changes.tell(ref);
    await Promise.all(applied.former.map((one) => endQuietly(services, one)));
    await Promise.all(applied.removedChannels.map((channel) => stopClicks(services.broker, channel)));
  }
  return applied;
}

/** Revokes the tokens of a former connection, best effort: the result has bootstrap tokens that are returned only once, so a failure must not lose it. */
async function endQuietly(services: Applying & Uses<'vault' | 'outbound'>, former: FormerConnection): Promise<void> {
  try {
    await endTokens(services, former);
  } catch (error) {
    const { id: connection } = former.connection;
    services.broker.log.error({ err: error, connection }, 'the tokens of a connection could not be revoked');
  }
}

/** Returns the changes for the audit row and its receipt: `update policy careful`; for an owner without the address. */
function listed(changes: readonly Change[], adopted: number) {
  const line = ({ action, kind, name }: Change) => `${action} ${kind}${kind === 'owner' ? '' : ` ${name}`}`;
  const isWhole = changes.length <= MAX_LISTED;
  const lines = (isWhole ? changes : changes.toSorted((a, b) => rankOf(a) - rankOf(b))).map(line);
  return { ...listedChanges(lines), ...(adopted > 0 && { adopted }) };
}
