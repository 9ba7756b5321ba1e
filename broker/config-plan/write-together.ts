/** Writes equal changes of many agents and grants in batches: thousands of single statements would block the store for a second. */
import { REVOCABLE } from '../admin/agents/change-agent-status.ts';
import { deleteGrant, updateAgent } from '../store/agents.ts';
import { revokeAgents } from '../store/revoke-agent.ts';
import type { Db } from '../store/store.ts';
import { ChangedMeanwhile, type Made, type Planning } from './planning.ts';

/**
 * Status details of an agent that was revoked because the file left it out. It comes back when the file names it again; suspended if it was suspended
 * then.
 */
export const REMOVED_DETAILS = {
  standing: 'Removed from the governance file.',
  suspended: 'Removed from the governance file while it was suspended.',
} as const;

/** Ids in one statement: SQLite supports 32,766 parameters. */
const BATCH_SIZE = 1_000;

/** Writes all batches except changed grants, which are prepared as rows (`prepareRows`). `rest`: awaited between statements. */
export async function writeTogether(
  db: Db,
  { together, organisationId, now }: Planning,
  made: Made,
  rest: () => Promise<void>,
): Promise<void> {
  for (const { change, ids } of together.reassigned.values())
    for (const some of inParts(ids)) {
      await updateAgent(db, organisationId, some, change);
      await rest();
    }
  for (const some of inParts(together.removedGrants)) {
    await deleteGrant(db, organisationId, some, now);
    await rest();
  }
  const [suspended, standing] = partition(together.revoked, ({ status }) => status === 'suspended');
  const endings = [
    { agents: standing, from: REVOCABLE.filter((status) => status !== 'suspended'), detail: REMOVED_DETAILS.standing },
    { agents: suspended, from: ['suspended'] as const, detail: REMOVED_DETAILS.suspended },
  ];
  for (const { agents, ...ending } of endings)
    for (const some of inParts(agents.map(({ id }) => id))) {
      const of = { organisationId, ids: some };
      const ended = await revokeAgents(db, of, { ...ending, cause: 'owner_manual' }, now);
      if (!ended) throw new ChangedMeanwhile('An agent');
      made.ended.push(...ended);
      await rest();
    }
}

const partition = <Item>(items: readonly Item[], is: (item: Item) => boolean): [Item[], Item[]] => [
  items.filter(is),
  items.filter((item) => !is(item)),
];

function* inParts<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += BATCH_SIZE) yield items.slice(at, at + BATCH_SIZE);
}
