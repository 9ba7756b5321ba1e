/** Agents that keep calling, whatever happens to the broker, and record every answer. */
import { type Answer, jsonPost, send, type TestAgent } from './agent.ts';
import type { Random } from './random.ts';

/** `share`: relative frequency, a whole number. Without `collection` the path ends in the call's own item. */
export type CallKind = {
  share: number;
  method: string;
  scope: string;
  data?: Record<string, unknown>;
  collection?: true;
};

/** One call under its own item id; several answers when it was repeated with its Idempotency-Key. */
export type Sent = { item: string; kind: CallKind; key: string | undefined; answers: Answer[] };

export type Load = { baseUrl: string; sent: Sent[]; stop(): Promise<void> };

const TOKEN_LIFE_MS = 20_000;
const MAX_REPEATS = 20;

/** Starts `workers` that make calls sequentially until they are stopped. Half of the changes carry an Idempotency-Key. */
export function startLoad(options: {
  baseUrl: string;
  agents: readonly TestAgent[];
  random: Random;
  kinds: readonly CallKind[];
  workers: number;
}): Load {
  const { baseUrl, agents, random, kinds } = options;
  const sent: Sent[] = [];
  let stopped = false;

  const tokens = new Map<TestAgent, { text: string; at: number }>();
  const tokenOf = (agent: TestAgent): string => {
    const known = tokens.get(agent);
    if (known && Date.now() - known.at < TOKEN_LIFE_MS) return known.text;
    const made = { text: agent.token(), at: Date.now() };
    tokens.set(agent, made);
    return made.text;
  };

  // Each kind as often as its share.
  const deck = kinds.flatMap((kind) => Array<CallKind>(kind.share).fill(kind));
  const chooseKind = (): CallKind => deck[Math.floor(random() * deck.length)]!;

  /** Undefined when the connection broke or could not be made. */
  const callOnce = async (agent: TestAgent, { item, kind, key }: Sent): Promise<Answer | undefined> => {
    const { method, scope, data, collection } = kind;
    const action = { platform: 'demo', endpoint: collection ? '/items' : `/items/${item}`, method, scope };
    try {
      return await send(
        `${baseUrl}/v1/actions`,
        jsonPost(
          { ...action, ...(data && { data }) },
          { authorization: `Bearer ${tokenOf(agent)}`, ...(key && { 'idempotency-key': key }) },
        ),
      );
    } catch {
      return undefined;
    }
  };

  const work = async (worker: number): Promise<void> => {
    const agent = agents[worker % agents.length]!;
    for (let count = 0; !stopped; count++) {
      const kind = chooseKind();
      const item = `w${worker}-${count}`;
      const call: Sent = { item, kind, key: kind.method !== 'GET' && random() < 0.5 ? item : undefined, answers: [] };
      sent.push(call);
      for (let repeat = 0; repeat < (call.key ? MAX_REPEATS : 1) && !stopped; repeat++) {
        const answer = await callOnce(agent, call);
        if (answer) call.answers.push(answer);
        if (answer && answer.status !== 409) break;
        // The broker is down, or the first attempt is not settled yet.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };

  const workers = Array.from({ length: options.workers }, (_, worker) => work(worker));
  return {
    baseUrl,
    sent,
    stop: async () => {
      stopped = true;
      await Promise.all(workers);
    },
  };
}
