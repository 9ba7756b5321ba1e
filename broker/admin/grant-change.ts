/** Grants that owners change themselves, in force at the very next decision on every replica. */

import type { Changing } from '../audit/record-change.ts';
import { type ChangingOwner, recordChange } from '../audit/record-change.ts';
import { deleteGrant, listGrants, putGrant } from '../store/agents.ts';
import { lockOrganisation } from '../store/governance.ts';
import type { AgentTable, ConnectionTable, GrantTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { changedGrant, describeGrant, findGrant, type GrantWord, type Ground } from './grant-terms.ts';

const MOST_WORDS = 4_000;

/**
 * Makes or changes a grant. Changes of an organisation's grants, and governance files, come one after the other. Throws
 * GrantRefused; AuditUnavailable, and then nothing is changed.
 */
export async function changeGrant(
  services: Changing,
  by: ChangingOwner,
  ground: Ground,
  word: GrantWord,
): Promise<{ grant: GrantTable; created: boolean }> {
  const { agent, platformId: platform } = ground;
  const change = { reason: 'grant_changed', agent, platform, detail: recipientsIn(word) };
  return await recordChange(services, by, change, async (db, note) => {
    await lockOrganisation(db, agent.organisation_id);
    const before = await findGrant(db, ground, word.connectionId);
    const grant = changedGrant(ground, before, word, services.broker.clock());
    await putGrant(db, grant);
    note({ before: before ? describeGrant(before) : null, after: describeGrant(grant) });
    return { grant, created: before === undefined };
  });
}

/** Who receives stands on record but in no receipt (specification, Receipt). */
function recipientsIn({ recipients }: GrantWord): string | null {
  if (recipients === undefined) return null;
  const words = recipients === null ? 'anybody' : recipients.length === 0 ? 'nobody' : recipients.join(', ');
  return `recipients: ${words.length > MOST_WORDS ? `${words.slice(0, MOST_WORDS).toWellFormed()}…` : words}`;
}

/**
 * Takes grants on a platform away, the one on a connection or all of them, which together are one event. Answers those that
 * were there; of none nothing is recorded. Throws AuditUnavailable.
 */
export async function removeGrants(
  services: Changing,
  by: ChangingOwner,
  agent: AgentTable,
  { platformId, connection }: { platformId: string; connection?: Pick<ConnectionTable, 'id' | 'is_default'> },
): Promise<GrantTable[]> {
  const list = async (db: Db): Promise<GrantTable[]> =>
    (await listGrants(db, agent.organisation_id, agent.id)).filter(
      (one) =>
        one.platform_id === platformId &&
        (!connection ||
          one.connection_id === connection.id ||
          (one.connection_id === null && connection.is_default === 1)),
    );
  const change = { reason: 'grant_removed', agent, platform: platformId };
  try {
    return await recordChange(services, by, change, async (db, note) => {
      await lockOrganisation(db, agent.organisation_id);
      const grants = await list(db);
      if (grants.length === 0) throw new NothingThere();
      for (const { id } of grants) await deleteGrant(db, agent.organisation_id, id);
      note({ before: grants.map(describeGrant), after: null });
      return grants;
    });
  } catch (error) {
    if (error instanceof NothingThere) return [];
    throw error;
  }
}

/** Undoes a transaction in which there is nothing to do. */
class NothingThere extends Error {}
