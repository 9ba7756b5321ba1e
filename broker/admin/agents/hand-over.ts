/** Hands agents of one owner over to another, who is responsible for them from the next decision. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { listAgents, updateAgent } from '../../store/agents.ts';
import { listOwners } from '../../store/organisations.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { inGovernanceFile } from '../governance-file.ts';
import { listedChanges } from '../listed-changes.ts';
import { ChangeRefused } from '../refused.ts';
import { loadAgent } from './find-agent.ts';

/** Ids per statement: SQLite allows 32,766 parameters. */
const BATCH_SIZE = 1_000;

export type HandOver = {
  /** Uuids of owners. */
  from: string;
  to: string;
  /** Uuids or agent ids; undefined: all agents that are not revoked. */
  agents?: readonly string[] | undefined;
};

/**
 * Hands over all the agents or none, in one transaction with its audit row. Children follow their parents, and so does the right to decide their
 * pending calls by passkey. Revoked agents keep their owner. Tokens in which an agent names its former owner stay valid.
 *
 * @returns the agents that were handed over, as they were before, and how many of them a governance file manages
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function handOver(
  services: Changing,
  by: ChangingOwner,
  { from, to, agents: chosen }: HandOver,
): Promise<{ given: AgentTable[]; inFile: number }> {
  const { db } = services.broker.store;
  const { organisation_id: organisationId } = by.owner;
  if (from === to) throw new ChangeRefused('invalid_request', 'to: this owner already has these agents.');
  const owners = await listOwners(db, organisationId);
  const giver = ownerOf(owners, from, 'from');
  const taker = ownerOf(owners, to, 'to');
  const meant = chosen && (await Promise.all(chosen.map((id) => loadAgent(db, organisationId, id))));
  const only = meant?.length === 1 ? meant[0] : undefined;
  const change = {
    reason: 'agents_handed_over',
    detail: `${giver.email} → ${taker.email}`,
    ...(only && { agent: only }),
  };
  const given = await recordInTurn(services, by, change, async (tx, note) => {
    const now = await listOwners(tx, organisationId);
    for (const [name, id] of Object.entries({ from, to })) ownerOf(now, id, name);
    const theirs = (await listAgents(tx, organisationId)).filter(
      (one) => one.owner_id === from && one.parent_id === null && one.status !== 'revoked',
    );
    const wanted = new Set(meant?.map(({ id }) => id));
    const given = meant ? theirs.filter(({ id }) => wanted.has(id)) : theirs;
    const missing = meant?.find(({ id }) => !given.some((one) => one.id === id));
    if (missing)
      throw new ChangeRefused(
        'conflict',
        `${missing.name} is not an agent of ${giver.email} that can be handed over: it belongs to another owner, was revoked, or is a child identity, which follows its parent.`,
      );
    if (given.length === 0) throw new ChangeRefused('conflict', `${giver.email} has no agents that are not revoked.`);
    const ids = given.map(({ id }) => id);
    for (let at = 0; at < ids.length; at += BATCH_SIZE)
      await updateAgent(tx, organisationId, ids.slice(at, at + BATCH_SIZE), { owner_id: to });
    const { changes, ...more } = listedChanges(given.map(({ agent_id }) => agent_id));
    note({ from, to, count: given.length, agents: changes, ...more });
    return given;
  });
  return { given, inFile: (await inGovernanceFile(db, organisationId, given)).length };
}

function ownerOf(owners: readonly OwnerTable[], id: string, name: string): OwnerTable {
  const found = owners.find((owner) => owner.id === id);
  if (!found) throw new ChangeRefused('not_found', `${name}: the organisation has no such owner.`);
  return found;
}
