/** Streams through the raw proxy: the delay of each event, and the memory for large bodies and many concurrent streams. */
import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { present } from '../broker/runtime/present.ts';
import type { BrokerTarget } from './broker-target.ts';
import { watchMemory } from './process.ts';
import { BENCH_PLATFORM_ID } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

export type StreamFindings = {
  late: { broker: Lateness; upstream: Lateness };
  /** Growth of the broker's resident bytes: the peak during downloads and uploads of LARGE_MIB, and while `streams` are open, less the value before. */
  grown: { large: number; streams: number };
  /** The number of open streams, for how many seconds, and the number of events that their readers received. */
  streams: { count: number; seconds: number; events: number };
};

/**
 * Milliseconds from the upstream's sending of an event to its arrival: for the first event of a GET, whose audit row is made durable then, for the
 * first event of a POST, as model APIs use, and for all later events.
 */
export type Lateness = { get: number[]; post: number[]; next: number[] };

export const LARGE_MIB = 100;
export const STREAMS = 200;
const MIB = Buffer.alloc(1024 * 1024, 'y');
const SHORT_STREAMS = 60;

type Side = { base: string; headers(at: number): Record<string, string> };

/** @param seconds how long the many streams are open */
export async function watchStreams(
  broker: BrokerTarget,
  { rounds, seconds }: { rounds: number; seconds: number },
  tell: (text: string) => void,
): Promise<StreamFindings> {
  const tokens = createTokenBatch(broker.agents, STREAMS, Date.now);
  const headers = (at: number) => ({ authorization: `Bearer ${present(tokens.fresh()[at % STREAMS], 'token')}` });
  const sides = {
    broker: { base: `${broker.baseUrl}/proxy/${BENCH_PLATFORM_ID}`, headers },
    upstream: { base: broker.upstreamUrl, headers: () => ({}) },
  } satisfies Record<string, Side>;
  const agent = new Agent({ keepAlive: true, maxSockets: STREAMS });
  try {
    const late: StreamFindings['late'] = {
      broker: { get: [], post: [], next: [] },
      upstream: { get: [], post: [], next: [] },
    };
    tell(`${SHORT_STREAMS} streams of events, in turns with the upstream itself`);
    for (let at = 0; at < SHORT_STREAMS; at++)
      for (const side of ['upstream', 'broker'] as const) {
        const method = at % 2 === 0 ? 'GET' : 'POST';
        const [first = Number.NaN, ...next] = await events(sides[side], agent, { method, at, seconds: 1, most: 2 });
        late[side][method === 'GET' ? 'get' : 'post'].push(first);
        late[side].next.push(...next);
      }
    const large = watchMemory(broker.pid);
    for (let round = 0; round < rounds; round++) {
      tell(`${LARGE_MIB} MiB down and up, round ${round + 1} of ${rounds}`);
      await transfer(sides.broker, agent, 'GET', round);
      await transfer(sides.broker, agent, 'PUT', round);
    }
    const grownByLarge = await large.end();
    tell(`${STREAMS} streams of ${seconds} s at the same time`);
    const many = watchMemory(broker.pid);
    const all = Array.from({ length: STREAMS }, (_, at) =>
      events(sides.broker, agent, { method: 'POST', at, seconds }),
    );
    const arrived = (await Promise.all(all)).reduce((sum, { length }) => sum + length, 0);
    const streams = { count: STREAMS, seconds, events: arrived };
    return { late, grown: { large: grownByLarge, streams: await many.end() }, streams };
  } finally {
    agent.destroy();
  }
}

/** Returns the delay of each event of a stream in milliseconds. `most`: disconnects after this number of events. */
async function events(
  side: Side,
  agent: Agent,
  { method, at, seconds, most }: { method: 'GET' | 'POST'; at: number; seconds: number; most?: number },
): Promise<number[]> {
  const answer = await ask(side, agent, { method, path: `/events/${seconds}`, at });
  const late: number[] = [];
  let text = '';
  for await (const piece of answer) {
    const now = process.hrtime.bigint();
    text += String(piece);
    const whole = text.split('\n\n');
    text = whole.pop() ?? '';
    for (const event of whole) late.push(Number(now - BigInt(event.slice('data: '.length))) / 1e6);
    if (most !== undefined && late.length >= most) break;
  }
  return late;
}

async function transfer(side: Side, agent: Agent, method: 'GET' | 'PUT', at: number): Promise<void> {
  const answer = await ask(side, agent, { method, path: `/files/${LARGE_MIB}`, at });
  let bytes = 0;
  let text = '';
  for await (const piece of answer) {
    bytes += piece.length;
    if (method === 'PUT') text += String(piece);
  }
  const moved = method === 'GET' ? bytes : (JSON.parse(text) as { bytes: number }).bytes;
  if (moved !== LARGE_MIB * MIB.length) throw new Error(`${method} moved ${moved} bytes`);
}

async function ask(
  side: Side,
  agent: Agent,
  { method, path, at }: { method: string; path: string; at: number },
): Promise<IncomingMessage> {
  const type = { 'content-type': 'application/octet-stream', 'content-length': LARGE_MIB * MIB.length };
  const headers = { ...side.headers(at), ...(method === 'PUT' && type) };
  const asked = request(`${side.base}${path}`, { agent, method, headers });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject);
  });
  if (method === 'PUT') await pipeline(Readable.from(Array(LARGE_MIB).fill(MIB), { highWaterMark: 1 }), asked);
  else asked.end();
  const answer = await answered;
  if (answer.statusCode !== 200) {
    const said = Buffer.concat(await answer.toArray()).toString();
    throw new Error(`${method} ${path}: ${answer.statusCode} ${said}`);
  }
  return answer;
}
