/** Lists and revokes standing approvals for owners. */
import { sentenceOfHeld } from '../../approvals/held-sentence.ts';
import { type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { Broker, Uses } from '../../broker.ts';
import { SealError } from '../../crypto/seal.ts';
import { openTerms, type SealedTerms } from '../../facts/standing-terms.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import type { Sentence } from '../../sentences/part.ts';
import { findApproval } from '../../store/approvals.ts';
import {
  endStandingApproval,
  findStandingApproval,
  type ListedStanding,
  listStandingApprovals,
} from '../../store/standing-approvals.ts';
import type { Db } from '../../store/store.ts';
import { ChangeRefused } from '../refused.ts';

/** `terms` undefined: they cannot be opened. `call`: the sentence of the held call from which it was made; null: that call was deleted. */
export type ReadStandingApproval = {
  row: ListedStanding;
  status: 'in_force' | 'ended' | 'expired';
  terms: SealedTerms | undefined;
  call: Sentence | null;
};

type Reading = Pick<Broker, 'store' | 'vault' | 'log' | 'clock'>;

/** Returns a page, newest first. `next`: cursor of the next page. `all`: includes ended ones, which are listed for 90 days. */
export async function readStandingApprovals(
  broker: Reading,
  organisationId: string,
  { all, ...page }: { agent?: string | undefined; all: boolean; before?: string | undefined; limit: number },
): Promise<{ approvals: ReadStandingApproval[]; next: string | null }> {
  const now = broker.clock();
  const found = await listStandingApprovals(broker.store.db, organisationId, { ...page, ...(!all && { now }) });
  return {
    approvals: await Promise.all(found.map((row) => read(broker, row, now))),
    next: found.length === page.limit ? (found.at(-1)?.id ?? null) : null,
  };
}

/**
 * Revokes a standing approval: it allows no call any more, from the next call on every replica. Throws ChangeRefused, or AuditUnavailable: then it
 * stays in force.
 */
export async function revokeStandingApproval(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  id: string,
): Promise<ReadStandingApproval> {
  const { broker } = services;
  const { organisation_id } = by.owner;
  const find = (db: Db) => findStandingApproval(db, organisation_id, id);
  const known = await find(broker.store.db);
  if (!known) throw new ChangeRefused('not_found', 'The organisation has no such standing approval.');
  const change = {
    reason: 'standing_approval_revoked',
    agent: { id: known.agent_id, agent_id: known.agent_public_id },
    platform: known.platform_id,
    connection: known.connection_id,
  };
  const ended = await recordChange(services, by, change, async (tx, note) => {
    if (!(await endStandingApproval(tx, known, by.owner.id, broker.clock())))
      throw new ChangeRefused('conflict', 'This standing approval has ended already.');
    const row = present(await find(tx), 'standing approval');
    note({ standing_approval: id, left: row.uses_left });
    return row;
  });
  return await read(broker, ended, broker.clock());
}

async function read(broker: Reading, row: ListedStanding, now: Instant): Promise<ReadStandingApproval> {
  const status = row.ended_at !== null ? 'ended' : row.expires_at <= now ? 'expired' : 'in_force';
  const approval = await findApproval(broker.store.db, row.organisation_id, row.approval_id);
  return {
    row,
    status,
    terms: termsOf(broker, row),
    call: approval ? sentenceOfHeld(broker, approval) : null,
  };
}

function termsOf(broker: Reading, row: ListedStanding): SealedTerms | undefined {
  try {
    return openTerms(broker, row);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error(
      { err: error, security: true, standing: row.id },
      'the terms of a standing approval cannot be opened',
    );
    return undefined;
  }
}
