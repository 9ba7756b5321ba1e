/**
 * The audit is pushed to a slow collector that sometimes refuses: after each kill it has every row of the log in order, and interrupted batches
 * were sent again unchanged, so that each row exists exactly once by its id.
 */
import { type CameRow, rowsIn, startAuditReceiver } from '../../world/servers/audit-receiver.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

/** After a kill the lease of the pushing process has to expire first, and a row has to be sequenced. */
const ALL_WITHIN_MS = 20_000;
const ANSWER_MS = 60;
const REFUSED = 0.05;

type Batch = { rows: CameRow[]; isTaken: boolean };

export async function auditPushes(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { world, organisation, random, ledger, reader } = scene;
  const collector = await startAuditReceiver();
  world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${collector.address}`;
  scene.environment.AGENT_BROKER_ALLOW_PRIVATE = world.environment.AGENT_BROKER_ALLOW_PRIVATE!;
  await world.restart();
  const batches = new Map<string, Batch>();
  /** Rows by index, as kept by a collector that deduplicates by id. */
  const kept = new Map<number, string>();
  let wrong: string | undefined;
  let newest = 0;
  let came = 0;
  const take = (id: string, rows: CameRow[], isTaken: boolean): void => {
    const before = batches.get(id);
    const said = (some: CameRow[]) => some.map((row) => `${row.index} ${row.id}`).join();
    if (before && said(before.rows) !== said(rows)) wrong ??= `the batch ${id} came again with other rows`;
    if (before?.isTaken) ledger.find('batches sent again after a kill');
    batches.set(id, { rows, isTaken: isTaken || before?.isTaken === true });
    const first = rows[0]!.index;
    if (first < newest) wrong ??= `a batch from row ${first} on came after one from row ${newest} on`;
    newest = first;
    if (!isTaken) return;
    for (const row of rows) {
      if (!kept.has(row.index) && row.index !== kept.size) wrong ??= `row ${row.index} came after ${kept.size} rows`;
      if ((kept.get(row.index) ?? row.id) !== row.id) wrong ??= `two rows have the index ${row.index}`;
      kept.set(row.index, row.id);
    }
  };
  collector.answer = (request, response, body) => {
    const rows = rowsIn(body);
    const isTaken = random() >= REFUSED;
    if (rows.length > 0) take(`${request.headers['webhook-id']}`, rows, isTaken);
    if (!isTaken) ledger.find('batches that the collector refused');
    came++;
    setTimeout(() => response.writeHead(isTaken ? 204 : 503).end(), random() * ANSWER_MS);
  };
  const agents = await agentsOf(scene);
  const made = await organisation.ask('POST', '/owner/audit-sinks', {
    name: 'siem',
    kind: 'webhook',
    url: `${collector.url}/in`,
    from: 'beginning',
  });
  if (made.status !== 201) throw new Error(made.text);
  const work = workers(4, async (worker, turn) => {
    const item = `s${worker}-${turn}`;
    const call = { platform: 'demo', endpoint: `/items/${item}`, method: 'GET', scope: 'demo:read' };
    const answer = await agents[worker % agents.length]!.act(call);
    invariants().answered(item, answer);
    await pause(random() * 40);
    return answer.status === 200;
  });
  return {
    ...work,
    // The duration of a push: the collector has the batch, answers, and the cursor moves.
    longestMs: 1.5 * ANSWER_MS,
    moment: async () => {
      const before = came;
      while (came === before) await pause(1);
    },
    check: async () => {
      const began = performance.now();
      for (;;) {
        if (wrong !== undefined) throw new Error(wrong);
        const stored = await reader.rows(
          `select id from audit_rows where organisation_id = '${organisation.id}' order by id`,
        );
        const ids = [...kept.values()].toSorted();
        if (new Set(ids).size < ids.length) throw new Error('a row came to the collector with two indexes');
        if (ids.join() === stored.map(({ id }) => id).join()) break;
        if (performance.now() - began > ALL_WITHIN_MS)
          throw new Error(`the collector has ${ids.length} of ${stored.length} rows after ${ALL_WITHIN_MS} ms`);
        await pause(100);
      }
      ledger.most('longest until the collector had every row, ms', performance.now() - began);
      ledger.check('the collector has every row, in order, exactly once by id', 1);
      ledger.most('most rows pushed from one store', kept.size);
    },
  };
}
