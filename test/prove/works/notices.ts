/** Held calls that a webhook is told of, and what was decided of them: each is, and a second copy has the same id. */
import { afterFile } from '../../world/after-file.ts';
import { startChannelServer } from '../../world/channel-server.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const LONGEST_MS = 20_000;

export async function notices(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { world, organisation, random, ledger, reader, ask } = scene;
  const server = await startChannelServer();
  afterFile(() => server.close());
  world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${server.address}`;
  scene.environment.AGENT_BROKER_ALLOW_PRIVATE = world.environment.AGENT_BROKER_ALLOW_PRIVATE!;
  await world.restart();
  server.answer = (_request, response) => setTimeout(() => response.writeHead(204).end(), random() * 40);
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
    check: async () => {
      const began = performance.now();
      for (;;) {
        const [{ due }] = await reader.rows(`select (select count(*) from notice_deliveries where state = 'due')
          + (select count(*) from notices) as due`);
        if (Number(due) === 0) break;
        if (performance.now() - began > LONGEST_MS) throw new Error(`${due} notices were not sent`);
        await pause(50);
      }
      ledger.most('longest until all notices were sent, ms', performance.now() - began);
      const came = Map.groupBy(server.came(), ({ type, data }) => `${type} ${data.id}`);
      const approvals = await reader.rows('select id, status from approvals');
      for (const { id, status } of approvals)
        for (const type of status === 'pending' ? ['call_held.opened'] : ['call_held.opened', 'call_held.outcome'])
          if (!came.has(`${type} ${id}`)) throw new Error(`nobody was told ${type} of ${id}`);
      for (const [what, copies] of came) {
        if (new Set(copies.map((copy) => copy.id)).size > 1)
          throw new Error(`the copies of ${what} have different ids`);
        ledger.most('most copies of one notice', copies.length);
      }
      ledger.check('each held call was told, and all copies have one id');
      // An agent may have 100 waiting: with no decision its next ones would be refused, and nobody told of them.
      for (const { id } of approvals.filter(({ status }) => status === 'pending')) {
        const denied = await ask('POST', `/owner/approvals/${id}/deny`, {});
        if (denied.status !== 200) throw new Error(`deny is answered ${denied.status}: ${denied.text}`);
      }
    },
  };
}
