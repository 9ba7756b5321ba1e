/** `npm run bench -- memory`: whether the memory of a broker grows under steady requests to all its entry points. */

import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { present } from '../broker/runtime/present.ts';
import { wholeNumber } from './bench-options.ts';
import type { BrokerTarget } from './broker-target.ts';
import { cleanupStack, keeper } from './cleanup.ts';
import { brokerSide } from './git.ts';
import { startPostgres } from './postgres.ts';
import { forkChild, residentBytes } from './process.ts';
import { BENCH_PLATFORM_ID, heldWrite, READ } from './requests.ts';
import type { StartBroker, Store } from './stage.ts';
import { createTokenBatch } from './tokens.ts';

export const MEMORY_USAGE = `Usage: npm run bench -- memory [--minutes N] [--connections N] [--store sqlite|postgres]

  --minutes N      how long (10)
  --connections N  so many requests run concurrently, one after the other on each connection (8)
  --store STORE    sqlite or postgres (sqlite)
`;

export type MemoryOptions = { minutes: number; connections: number; store: Store };

/** Parses the command line. Throws an Error with a message for the user. */
export function readMemoryOptions(args: readonly string[]): MemoryOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { minutes: text, connections: text, store: text } });
  const { store = 'sqlite' } = values;
  if (store !== 'sqlite' && store !== 'postgres')
    throw new Error(`--store: ${store} is not a store; take sqlite or postgres.`);
  return {
    minutes: wholeNumber('--minutes', values.minutes, 10, 24 * 60),
    connections: wholeNumber('--connections', values.connections, 8, 256),
    store,
  };
}

const AGENTS = 100;
const INTERVALS = 12;
/** Intervals in which caches still fill; the others are compared by halves. */
const WARM_UP = 4;
const SAMPLE_INTERVAL_MS = 500;
/** Growth of the heap, or of buffers, that is taken for noise. */
const MAX_GROWTH = 6 * 1024 * 1024;

/** Bytes; `heap` and `external` (buffers) of the main thread, `resident` of the process. */
export type Memory = { heap: number; external: number; resident: number };
/** The lowest sample of an interval, which is close to what a garbage collection leaves; `requests`: answered until its end. */
export type Interval = Memory & { requests: number };

type Asked = { method?: string; path: string; authorization?: string; body?: unknown; accept?: string };
type Answered = { status: number; text: string };
type Ask = (asked: Asked) => Promise<Answered>;
/** Who asks: the tokens of an agent and of the owner; the broker as a TRQP authority; and a number that no other request has. */
type As = { agent: string; agentId: string; git: string; owner: string; authority: string; number: number };
/** A kind of request, with the status of its answer. `run` may send further requests. */
type Kind = { name: string; expected: number; run(ask: Ask, as: As): Promise<number> };

const one = (name: string, expected: number, asked: (as: As) => Asked): Kind => ({
  name,
  expected,
  run: async (ask, as) => (await ask(asked(as))).status,
});
const action = (body: unknown) => (as: As) => ({ method: 'POST', path: '/v1/actions', authorization: as.agent, body });
const mcp = (method: string, params: object) => (as: As) => ({
  method: 'POST',
  path: '/mcp',
  authorization: as.agent,
  body: { jsonrpc: '2.0', id: as.number, method, params },
  accept: 'application/json, text/event-stream',
});
const asOwner = (path: string) => (as: As) => ({ path, authorization: as.owner });

const { platform, scope, endpoint } = READ;
export const KINDS: readonly Kind[] = [
  one('read', 200, action(READ)),
  one('read in /proxy', 200, (as) => ({ path: `/proxy/${BENCH_PLATFORM_ID}${endpoint}`, authorization: as.agent })),
  one('refused call', 403, action({ ...READ, method: 'DELETE', scope: 'bench:items.write' })),
  one('call without a token', 401, () => ({ method: 'POST', path: '/v1/actions', body: READ })),
  one('stream of a file', 200, (as) => ({ path: `/proxy/${BENCH_PLATFORM_ID}/files/1`, authorization: as.agent })),
  one('list of tools', 200, mcp('tools/list', {})),
  one('call of a tool', 200, mcp('tools/call', { name: 'read_platform', arguments: { platform, scope, endpoint } })),
  one('permissions', 200, (as) => ({ path: '/v1/agent/permissions', authorization: as.agent })),
  one('AuthZEN decision', 200, (as) => ({
    method: 'POST',
    path: '/v1/authzen/access',
    authorization: as.agent,
    body: {
      subject: { type: 'agent', id: as.agentId },
      action: { name: scope },
      resource: { type: 'platform', id: platform },
    },
  })),
  one('TRQP decision', 200, (as) => ({
    method: 'POST',
    path: '/v1/trqp/authorization',
    body: { entity_id: as.agentId, authority_id: as.authority, action: scope, resource: platform },
  })),
  one('git advertisement', 200, (as) => ({
    path: '/git/acme/1.git/info/refs?service=git-upload-pack',
    authorization: as.git,
  })),
  one('activity', 200, asOwner('/owner/audit?limit=20')),
  one('inbox', 200, asOwner('/owner/approvals?limit=10')),
  one('console', 200, () => ({ path: '/console/' })),
  {
    name: 'held call, its wait, and its refusal',
    expected: 200,
    run: async (ask, as) => {
      const held = await ask(action(heldWrite(as.number))(as));
      if (held.status !== 202) return held.status;
      const id = String((JSON.parse(held.text) as { approval_id: string }).approval_id);
      const waiting = ask({ path: `/v1/approvals/${id}?wait=20`, authorization: as.agent });
      const path = `/owner/approvals/${id}/deny`;
      const denied = await ask({ method: 'POST', path, authorization: as.owner, body: {} });
      const { status } = await waiting;
      return denied.status === 200 ? status : denied.status;
    },
  },
];

/** Runs the bench and prints the results. Returns the exit code: 1 when memory grew, or an answer had another status than expected. */
export async function benchMemory({ minutes, connections, store }: MemoryOptions, start: StartBroker): Promise<number> {
  await using stack = cleanupStack();
  const keep = keeper(stack);
  const origin = (child: { said: unknown }) => `http://127.0.0.1:${(child.said as { port: number }).port}`;
  const upstreamUrl = origin(keep(await forkChild('upstream.ts', {})));
  const gitUrl = origin(keep(await forkChild('git-upstream.ts', {})));
  const database = store === 'postgres' ? keep(present(await startPostgres(), 'PostgreSQL')) : undefined;
  const on = database
    ? ({ store: 'postgres', databaseUrl: await database.createDatabase('memory') } as const)
    : ({ store: 'sqlite' } as const);
  const broker = keep(present(await start({ ...on, agents: AGENTS, upstreamUrl, gitUrl, streams: true }), 'broker'));
  const { intervals, wrong } = await load(broker, connections, minutes * 60_000);
  const { grown, isSteady } = judgeMemory(intervals);
  const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1).padStart(8);
  process.stdout.write(
    [
      `${minutes} minutes on ${store}, ${connections} connections, MiB of the main thread (lowest of each interval) and of the process`,
      'requests      heap  buffers  resident',
      ...intervals.map(
        (at) => `${String(at.requests).padStart(8)}${mib(at.heap)} ${mib(at.external)}  ${mib(at.resident)}`,
      ),
      `grown from the first to the second half, without the first ${WARM_UP}: heap ${mib(grown.heap).trim()}, buffers ${mib(grown.external).trim()} MiB (at most ${mib(MAX_GROWTH).trim()} each)`,
      ...[...wrong].map(([what, count]) => `Wrong: ${what}, ${count} times`),
      '',
    ].join('\n'),
  );
  return isSteady && wrong.size === 0 ? 0 : 1;
}

/** Compares the lowest values of the second half after the warm-up to those of the first: full collections are minutes apart. */
export function judgeMemory(intervals: readonly Interval[]): { grown: Omit<Memory, 'resident'>; isSteady: boolean } {
  const warm = intervals.slice(WARM_UP);
  const half = Math.ceil(warm.length / 2);
  const growth = (of: 'heap' | 'external') => {
    const lowest = (some: readonly Interval[]) => Math.min(...some.map((one) => one[of]));
    return lowest(warm.slice(half)) - lowest(warm.slice(0, half));
  };
  const grown = { heap: growth('heap'), external: growth('external') };
  return { grown, isSteady: grown.heap <= MAX_GROWTH && grown.external <= MAX_GROWTH };
}

/** Sends requests of all kinds in turn for `ms`. `wrong`: answers with another status than expected, by kind and status. */
async function load(
  broker: BrokerTarget,
  connections: number,
  ms: number,
): Promise<{ intervals: Interval[]; wrong: Map<string, number> }> {
  const wrong = new Map<string, number>();
  const tokens = createTokenBatch(broker.agents, AGENTS, Date.now);
  const git = brokerSide(broker);
  const owner = `Bearer ${await broker.ownerToken()}`;
  const authority = `did:web:localhost%3A${new URL(broker.baseUrl).port}`;
  const ask = asker(broker.baseUrl);
  const end = performance.now() + ms;
  let requests = 0;
  const connection = async (first: number): Promise<void> => {
    for (let number = first; performance.now() < end; number += connections) {
      const kind = present(KINDS[Math.floor(number / connections) % KINDS.length], 'kind of request');
      const at = number % AGENTS;
      const agent = `Bearer ${present(tokens.fresh()[at], 'token')}`;
      const { agentId } = present(broker.agents[at], 'agent');
      const as = { agent, agentId, git: git.authorization(at) ?? '', owner, authority, number };
      const status = await kind.run(ask, as).catch((error: Error) => error.message);
      requests++;
      if (status === kind.expected) continue;
      const what = `${kind.name}: ${status} instead of ${kind.expected}`;
      wrong.set(what, (wrong.get(what) ?? 0) + 1);
    }
  };
  const running = Promise.all(Array.from({ length: connections }, (_, at) => connection(at)));
  const intervals: Interval[] = [];
  for (let at = 0; at < INTERVALS; at++) {
    const until = end - (ms * (INTERVALS - 1 - at)) / INTERVALS;
    const lowest = { heap: Number.POSITIVE_INFINITY, external: Number.POSITIVE_INFINITY };
    do {
      await wait(SAMPLE_INTERVAL_MS);
      const { text } = await ask({ path: '/metrics' });
      lowest.heap = Math.min(lowest.heap, gaugeOf(text, 'nodejs_heap_size_used_bytes'));
      lowest.external = Math.min(lowest.external, gaugeOf(text, 'nodejs_external_memory_bytes'));
    } while (performance.now() < until);
    intervals.push({ ...lowest, resident: residentBytes([broker.pid]), requests });
  }
  await running;
  return { intervals, wrong };
}

function gaugeOf(metrics: string, name: string): number {
  const [, value] = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics) ?? [];
  return Number(present(value, `metric ${name}`));
}

const asker =
  (baseUrl: string): Ask =>
  async ({ method = 'GET', path, authorization, body, accept = '*/*' }) => {
    const headers = {
      accept,
      ...(authorization && { authorization }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    };
    const answer = await fetch(`${baseUrl}${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: answer.status, text: await answer.text() };
  };
