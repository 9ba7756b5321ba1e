/** Reads, changes, deletions, held calls and refused calls; half of the changes have an Idempotency-Key. */
import type { Answer, TestAgent } from '../../world/agent.ts';
import { CANARY } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { type Scene, type Work, workers } from '../scene.ts';

/** Body of calls, which must not be stored in plain text. */
export const BODY = { text: CANARY };

const SCOPES = {
  'demo:read': ['GET /items/*'],
  'demo:write': ['POST /items/*', 'PATCH /items/*'],
  'demo:delete': ['DELETE /items/*'],
};
const KINDS = [
  ...Array(38).fill({ method: 'GET', scope: 'demo:read' }),
  ...Array(34).fill({ method: 'PATCH', scope: 'demo:write', data: BODY }),
  ...Array(12).fill({ method: 'DELETE', scope: 'demo:delete' }),
  ...Array(4).fill({ method: 'POST', scope: 'demo:write', data: BODY }),
  ...Array(12).fill({ method: 'PATCH', scope: 'demo:read', data: BODY }),
] as { method: string; scope: string; data?: object }[];

/** Number of recent answers to report when no call succeeds any more. */
const LATEST = 20;

type Call = { item: string; agent: TestAgent; action: Record<string, unknown>; key?: string };

/** Creates two agents at a platform that answers slowly. */
export async function agentsOf(
  { world, organisation, random }: Scene,
  more: { rules?: object[]; policy?: string } = {},
): Promise<TestAgent[]> {
  await organisation.platform({ manifest: { scopes: SCOPES } });
  world.upstream.answer = (request, response, body) => {
    const answer = () =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ bytes: body.length }));
    const slowness = random();
    if (slowness < 0.5 || request.destroyed) answer();
    else setTimeout(answer, slowness < 0.9 ? slowness * 30 : 150);
  };
  return [await organisation.agent({ name: 'one', ...more }), await organisation.agent({ name: 'two', ...more })];
}

/** Resolves when the platform has received a call. */
export const whenSeen =
  ({ world }: Scene) =>
  async (): Promise<void> => {
    const before = world.upstream.seen.length;
    while (world.upstream.seen.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  };

export async function calls(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { random, ledger } = scene;
  const agents = await agentsOf(scene);
  /** Calls without an answer, which are retried with their key. */
  const unsettled: Call[] = [];
  const latest: string[] = [];
  const note = (what: string) => {
    latest.push(what);
    if (latest.length > LATEST) latest.shift();
  };
  const newCall = (worker: number, turn: number): Call => {
    const { method, scope, data } = KINDS[Math.floor(random() * KINDS.length)]!;
    const item = `w${worker}-${turn}`;
    const action = { platform: 'demo', endpoint: `/items/${item}`, method, scope, ...(data && { data }) };
    const agent = agents[worker % agents.length]!;
    return { item, agent, action, ...(method !== 'GET' && random() < 0.5 && { key: item }) };
  };
  const settle = (call: Call, { status, body }: Answer): boolean => {
    if (status === 503 && call.key !== undefined) unsettled.push(call);
    if (status !== 409) return true;
    if (body.error === 'idempotency_in_progress') unsettled.push(call);
    else if (body.error !== 'idempotency_outcome_unknown') throw new Error(`${call.item}: 409 ${body.error}`);
    else ledger.find('keys answered with idempotency_outcome_unknown');
    return false;
  };
  const work = workers(10, async (worker, turn) => {
    // Every other call is new: the key of a call that was killed before it began stays in progress until recovery releases it, and ten such
    // calls would occupy all ten workers.
    const call = (turn % 2 === 0 ? unsettled.shift() : undefined) ?? newCall(worker, turn);
    let answer: Answer;
    try {
      answer = await call.agent.act(call.action, call.key === undefined ? {} : { 'idempotency-key': call.key });
      note(`${answer.status} ${answer.body.error ?? ''}`);
    } catch (error) {
      note(String(error));
      if (call.key !== undefined) unsettled.push(call);
      throw error;
    }
    if (!settle(call, answer)) return false;
    invariants().answered(call.item, answer);
    return answer.status === 200;
  });
  return {
    ...work,
    moment: whenSeen(scene),
    lately: () => `${unsettled.length} to be made again; ${latest.join(', ')}`,
  };
}
