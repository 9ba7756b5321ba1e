/**
 * Notices about held calls and their decisions to a webhook: each is sent within two seconds of the hold or of the next start, and a second copy has
 * the same id, and exists only when a kill happened between the channel's answer and storing it.
 */
import { type Came, startChannelServer } from '../../world/servers/channel-server.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const MAX_DURATION_MS = 20_000;
const TOLD_WITHIN_MS = 2_000;
/** Maximum delay of an answer, and maximum time for storing it. */
const ANSWER_MS = 40;
const MARKED_WITHIN_MS = 1_000;

type Copy = Pick<Came, 'id' | 'type'> & { about: string; at: number };

export async function notices(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { world, organisation, random, ledger, reader, ask } = scene;
  const server = await startChannelServer();
  world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${server.address}`;
  scene.environment.AGENT_BROKER_ALLOW_PRIVATE = world.environment.AGENT_BROKER_ALLOW_PRIVATE!;
  await world.restart();
  const copies: Copy[] = [];
  server.answer = (request, response, body) => {
    const { type, data } = JSON.parse(body);
    copies.push({ id: `${request.headers['webhook-id']}`, type, about: data.id, at: Date.now() });
    setTimeout(() => response.writeHead(204).end(), random() * ANSWER_MS);
  };
  const killedAt: number[] = [];
  const servedAt: number[] = [];
  const looked = new Set<string>();
  const agents = await agentsOf(scene);
  const made = await organisation.ask('POST', '/owner/channels', {
    name: 'hook',
    kind: 'webhook',
    url: `${server.url}/hook`,
  });
  if (made.status !== 201) throw new Error(made.text);
  const work = workers(3, async (worker, turn) => {
    const item = `n${worker}-${turn}`;
    const call = { platform: 'demo', endpoint: `/items/${item}`, method: 'POST', scope: 'demo:write', data: {} };
    const agent = agents[worker % agents.length]!;
    const answer = await agent.act(call);
    invariants().answered(item, answer);
    await pause(random() * 60);
    return answer.status === 202;
  });
  return {
    ...work,
    moment: async () => {
      const before = server.seen.length;
      while (server.seen.length === before) await pause(1);
    },
    afterKill: async () => {
      killedAt.push(Date.now());
    },
    check: async (served) => {
      servedAt.push(served);
      const began = performance.now();
      for (;;) {
        const [{ due }] = await reader.rows(`select (select count(*) from notice_deliveries where state = 'due')
          + (select count(*) from notices) as due`);
        if (Number(due) === 0) break;
        if (performance.now() - began > MAX_DURATION_MS) throw new Error(`${due} notices were not sent`);
        await pause(50);
      }
      const came = Map.groupBy(copies, ({ type, about }) => `${type} ${about}`);
      const approvals = await reader.rows('select id, status, created_at from approvals');
      for (const { id, status, created_at } of approvals) {
        for (const type of status === 'pending' ? ['call_held.opened'] : ['call_held.opened', 'call_held.outcome'])
          if (!came.has(`${type} ${id}`)) throw new Error(`nobody was told ${type} of ${id}`);
        if (!looked.has(id)) lookAtTime(id, Number(created_at), came.get(`call_held.opened ${id}`)![0]!.at);
      }
      for (const [what, all] of came) lookAtCopies(what, all);
      ledger.check('each held call was notified, and all copies have the same id');
      // An agent may have 100 pending calls: without decisions its next calls would be refused, without notices.
      for (const { id } of approvals.filter(({ status }) => status === 'pending')) {
        const denied = await ask('POST', `/owner/approvals/${id}/deny`, {});
        if (denied.status !== 200) throw new Error(`deny is answered ${denied.status}: ${denied.text}`);
      }
    },
  };

  /** Measures from the hold, or from the start of the broker that sent the notice, whichever was later. */
  function lookAtTime(id: string, held: number, at: number): void {
    looked.add(id);
    const served = killedAt.some((moment) => held <= moment && moment <= at)
      ? servedAt.findLast((moment) => moment <= at)
      : undefined;
    const took = at - Math.max(held, served ?? 0);
    ledger.most(served ? 'longest from ready to notified, ms' : 'longest from held to notified, ms', took);
    ledger.find(served ? 'held calls notified after a kill' : 'held calls notified without a kill');
    if (took > TOLD_WITHIN_MS)
      throw new Error(`${id} was told ${Math.round(took)} ms after ${served ? 'the next start' : 'it was held'}`);
    ledger.check('a held call is notified within 2 s, or within 2 s of the next start after a kill');
  }

  function lookAtCopies(what: string, all: readonly Copy[]): void {
    if (new Set(all.map(({ id }) => id)).size > 1) throw new Error(`the copies of ${what} have different ids`);
    ledger.most('most copies of one notice', all.length);
    for (const [index, copy] of all.entries()) {
      const next = all[index + 1];
      if (!next || looked.has(`${what} ${index}`)) continue;
      looked.add(`${what} ${index}`);
      const killed = killedAt.find((moment) => moment >= copy.at);
      if (killed === undefined || killed > next.at) throw new Error(`${what} was sent twice, and no kill was between`);
      const before = killed - copy.at;
      if (before > ANSWER_MS + MARKED_WITHIN_MS)
        throw new Error(`${what} was sent again, and came ${Math.round(before)} ms before the kill`);
      ledger.find('duplicates, each after a kill before the commit');
      ledger.most('longest from a first copy to the kill, ms', before);
    }
  }
}
