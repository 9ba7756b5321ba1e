/** Reads that a rule looks back at, and changes that it denies from then on: denied to every agent that has read, or may have read, the answer. */
import type { TestAgent } from '../../world/agent.ts';
import { ALLOW_ALL } from '../../world/world.ts';
import { type Invariants, itemOf } from '../invariants.ts';
import { type Scene, type Work, workers } from '../scene.ts';
import { agentsOf, BODY, whenSeen } from './calls.ts';

/** Number of pairs of a read and a change per agent, each with a rule of its own: what was read once counts as read for the whole run. */
const PAIRS = 60;
const AGENTS = 40;

type Turn = { agent: TestAgent; pair: number; turn: number };

export async function lookBacks(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { organisation, random, ledger, world } = scene;
  const agents = await agentsOf(scene, { rules: ALLOW_ALL });
  while (agents.length < AGENTS)
    agents.push(await organisation.agent({ name: `agent ${agents.length}`, rules: ALLOW_ALL }));
  const begins = (with_: string) => `request.endpoint.startsWith("/items/${with_}-")`;
  await organisation.guardrails(
    Array.from({ length: PAIRS }, (_, pair) => ({
      name: `pair ${pair}`,
      effect: 'deny',
      when: begins(`w${pair}`),
      after: { when: begins(`r${pair}`), within: '30d' },
    })),
  );
  /** Reads without an answer. */
  let unanswered: (Turn & { item: string })[] = [];
  let after = 0;

  const change = async ({ agent, pair, turn }: Turn): Promise<number> => {
    const item = `w${pair}-${turn}-${after++}`;
    const action = { platform: 'demo', endpoint: `/items/${item}`, method: 'PATCH', scope: 'demo:write', data: BODY };
    const answer = await agent.act(action);
    invariants().answered(item, answer);
    return answer.status;
  };
  const read = async ({ agent, pair, turn }: Turn): Promise<number> => {
    const item = `r${pair}-${turn}`;
    const action = { platform: 'demo', endpoint: `/items/${item}`, method: 'GET', scope: 'demo:read' };
    try {
      const answer = await agent.act(action);
      invariants().answered(item, answer);
      return answer.status;
    } catch (error) {
      unanswered.push({ agent, pair, turn, item });
      throw error;
    }
  };
  const work = workers(8, async (_worker, turn) => {
    const agent = agents[turn % AGENTS]!;
    const pair = Math.floor(turn / AGENTS) % PAIRS;
    const isFirst = turn < AGENTS * PAIRS;
    const one = { agent, pair, turn };
    if (isFirst && random() < 0.3) {
      const before = await change(one);
      if (before === 403) throw new Error(`${agent.agentId} has read nothing of pair ${pair}, and is refused`);
    }
    if ((await read(one)) !== 200) return false;
    const status = await change(one);
    if (status === 200) throw new Error(`${agent.agentId} has read of pair ${pair}, and its change is made`);
    if (status === 403) ledger.check('a change after a read that a look-back condition refers to is refused');
    return status === 403;
  });
  return {
    ...work,
    moment: whenSeen(scene),
    check: async () => {
      const seen = new Set(world.upstream.seen.map(({ target }) => itemOf(target)));
      for (const one of unanswered.filter(({ item }) => seen.has(item))) {
        const status = await change(one);
        if (status !== 403)
          throw new Error(`the platform saw ${one.item}, and the change after it is answered ${status}`);
        ledger.check('a change after an interrupted read that the platform received is refused');
      }
      unanswered = [];
    },
  };
}
