/** `npm run bench -- neighbours`: the latency of an agent's governed reads while another agent sends the worst known requests. */

import { parseArgs } from 'node:util';
import { present } from '../broker/runtime/present.ts';
import { wholeNumber } from './bench-options.ts';
import { cleanupStack, keeper } from './cleanup.ts';
import { startLoadGenerator } from './generator.ts';
import type { Latency } from './histogram.ts';
import { median } from './measure.ts';
import { forkChild } from './process.ts';
import { BENCH_PLATFORM_ID, governedRead, READ } from './requests.ts';
import type { StartBroker } from './stage.ts';
import { createTokenBatch } from './tokens.ts';

export const NEIGHBOURS_USAGE = `Usage: npm run bench -- neighbours [--rounds N] [--seconds N] [--connections N]

  --rounds N       rounds, in each of which every kind of request is sent once (3)
  --seconds N      length of a run (5)
  --connections N  connections of the agent that sends them, one request after the other on each (4)
`;

export type NeighboursOptions = { rounds: number; seconds: number; connections: number };

/** Parses the command line. Throws an Error with a message for the user. */
export function readNeighboursOptions(args: readonly string[]): NeighboursOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { rounds: text, seconds: text, connections: text } });
  return {
    rounds: wholeNumber('--rounds', values.rounds, 3, 100),
    seconds: wholeNumber('--seconds', values.seconds, 5, 600),
    connections: wholeNumber('--connections', values.connections, 4, 64),
  };
}

const MIB = 1024 * 1024;
/** The largest data of a call: the limit of the body less the JSON around the data. */
const LARGEST = MIB - 1_000;
const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

/** `none`: no requests are sent next to the reads. */
type Kind = { name: string; method: string; path: string; type: string; body(): string } | { name: string; none: true };

const filled = (piece: string, bytes = LARGEST): string => piece.repeat(bytes / piece.length);
const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [i.toString(36), 0]));
/** A call under a scope that does not cover it: it is parsed and decided as any other, but not sent to the platform. */
const call = (data: unknown): string =>
  JSON.stringify({
    platform: BENCH_PLATFORM_ID,
    endpoint: '/items/1347',
    method: 'PATCH',
    scope: 'bench:items.read',
    data,
  });
const action = (name: string, data: () => unknown): Kind => {
  return { name, method: 'POST', path: '/v1/actions', type: JSON_TYPE, body: () => call(data()) };
};
const raw = (name: string, type: string, body: () => string): Kind => {
  return { name, method: 'PUT', path: `/proxy/${BENCH_PLATFORM_ID}/files/1`, type, body };
};

/** A read of a long item by a tool of `/mcp`. */
const tool = (name: string, endpoint: string): Kind => {
  const asked = { platform: BENCH_PLATFORM_ID, scope: READ.scope, endpoint };
  const message = { method: 'tools/call', params: { name: 'read_platform', arguments: asked } };
  const body = () => JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
  return { name, method: 'POST', path: '/mcp', type: JSON_TYPE, body };
};

/** The requests of test/http/long-bodies.test.ts, except those to entry points that the bench's agents cannot use. */
export const KINDS: readonly Kind[] = [
  { name: 'nothing', none: true },
  action('a call, small', () => ({ title: 'a' })),
  action('a call, 90,000 names', () => names(90_000)),
  action('a call, nested lists', () => ({ a: Array(120_000).fill([[[]]]) })),
  action('a call, what looks like an address', () => ({ a: `${filled('a.', 64_000)}@` })),
  raw('/proxy, a form of a MiB', FORM, () => filled('&method')),
  raw('/proxy, a form of other letters', FORM, () => filled('&éé', 500_000)),
  raw('/proxy, a form of 8 MiB', FORM, () => filled('&method', 8 * MIB)),
  raw('/proxy, boundaries', 'multipart/form-data; boundary=b', () => filled('--b')),
  raw('/proxy, 90,000 names', JSON_TYPE, () => JSON.stringify(names(90_000))),
  tool('/mcp, an answer of 9 MiB', '/items/numbers-9'),
  tool('/mcp, the same with a long integer', '/items/digits-9'),
];

/** Runs the bench and prints the results. Returns the exit code: 1 when a read was not answered with 200. */
export async function benchNeighbours(
  { rounds, seconds, connections }: NeighboursOptions,
  start: StartBroker,
): Promise<number> {
  await using stack = cleanupStack();
  const keep = keeper(stack);
  const upstream = keep(await forkChild('upstream.ts', {}));
  const upstreamUrl = `http://127.0.0.1:${(upstream.said as { port: number }).port}`;
  const broker = keep(
    present(await start({ store: 'sqlite', agents: 2, callers: 2, upstreamUrl, streams: true }), 'broker'),
  );
  const [reads, attacks] = [await startLoadGenerator(), await startLoadGenerator()];
  keep(reads.child);
  keep(attacks.child);
  const port = Number(new URL(broker.baseUrl).port);
  const [reader, attacker] = broker.agents.map((agent) => createTokenBatch([agent], 1, Date.now));
  const tokenOf = (batch: typeof reader) => present(batch?.fresh()[0], 'token');
  const order = { host: '127.0.0.1', port, mostCalls: 100_000_000, warmupMs: 500 };
  const read = (ms: number) =>
    reads.run({ ...order, connections: 1, measureMs: ms, requests: [governedRead(tokenOf(reader))] });
  process.stderr.write('warming up\n');
  await read(5_000);

  const found = new Map<string, { latency: Latency; sent: number; statuses: Record<string, number> }[]>();
  const wrong = new Map<string, number>();
  for (let round = 1; round <= rounds; round++) {
    for (const kind of KINDS) {
      process.stderr.write(`round ${round} of ${rounds}, beside ${kind.name}\n`);
      const bytes = 'none' in kind ? undefined : requestOf(kind, tokenOf(attacker));
      // The attack starts before the reads are measured and ends after them.
      const attack =
        bytes && attacks.run({ ...order, connections, measureMs: seconds * 1_000 + 500, requests: [bytes] });
      const { latency, statuses, errors } = await read(seconds * 1_000);
      const sent = await attack;
      for (const [what, count] of [...Object.entries(statuses), ...Object.entries(errors)])
        if (what !== '200') wrong.set(`${kind.name}: ${what}`, (wrong.get(`${kind.name}: ${what}`) ?? 0) + count);
      const before = found.get(kind.name) ?? [];
      found.set(kind.name, [...before, { latency, sent: sent?.rate ?? 0, statuses: sent?.statuses ?? {} }]);
    }
  }
  process.stdout.write(
    `${[
      `Governed reads on one connection beside ${connections} connections of another agent, on SQLite; the middle of ${rounds} rounds of ${seconds} s:`,
      '',
      `${'beside'.padEnd(36)}${['p50', 'p99', 'slowest', 'others'].map((one) => one.padStart(12)).join('')}  answered`,
      ...[...found].map(([name, runs]) => {
        const of = (pick: (latency: Latency) => number) =>
          `${median(runs.map((one) => pick(one.latency))).toFixed(1)} ms`;
        const rate = `${median(runs.map((one) => one.sent)).toFixed(0)}/s`;
        const told = [...new Set(runs.flatMap((one) => Object.keys(one.statuses)))].join(', ');
        const cells = [of((one) => one.p50), of((one) => one.p99), of((one) => one.max), rate];
        return `${name.padEnd(36)}${cells.map((one) => one.padStart(12)).join('')}  ${told}`;
      }),
      ...[...wrong].map(([what, count]) => `Wrong: beside ${what}, ${count} times`),
    ].join('\n')}\n`,
  );
  return wrong.size === 0 ? 0 : 1;
}

function requestOf({ method, path, type, body }: Exclude<Kind, { none: true }>, token: string): Buffer {
  const bytes = Buffer.from(body());
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${token}`,
    `content-type: ${type}`,
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2025-11-25',
    `content-length: ${bytes.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}
