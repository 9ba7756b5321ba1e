/** Governed git compared with nginx: large packs in both directions, many concurrent clones, the latency of an advertisement, and many small pushes. */
import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';
import type { BrokerTarget } from './broker-target.ts';
import { quantile } from './measure.ts';
import { watchMemory } from './process.ts';
import { createTokenBatch } from './tokens.ts';

/** One side of a comparison: the base URL of repositories, and the Authorization header of agent number `at`. */
export type GitSide = { base: string; authorization(at: number): string | undefined };

export type GitFindings = {
  /** Bytes per second, for each side. */
  clone: { broker: number[]; nginx: number[] };
  push: { broker: number[]; nginx: number[] };
  /** A chunked push after a probe request, as git sends a body longer than its http.postBuffer. */
  chunked: { broker: number[]; nginx: number[] };
  /** CLONES concurrent clones of CLONE_MIB: total bytes per second. */
  clones: { broker: number; nginx: number };
  /** Growth of the broker's resident bytes: the peak during a large clone and push, and during the concurrent clones, less the value before. */
  grown: { large: number; clones: number };
  /** Milliseconds of an advertisement, measured on the two sides in turn. */
  refs: { broker: number[]; nginx: number[] };
};

export type PushFindings = {
  /** Finished pushes per second; RATE are started per second. */
  rate: number;
  /** Milliseconds of a push: advertisement, probe and pack. */
  latency: number[];
  failed: number;
  rows: number;
};

const MIB = 1024 * 1024;
const LARGE_MIB = 500;
const CLONE_MIB = 50;
const CLONES = 20;
const ADVERTISEMENTS = 400;
/** Warm-up advertisements per side: they take longer while V8 still compiles. */
const WARM_UP = 3_000;
/** Pushes started per second. */
const RATE = 100;
const PUSHING_SECONDS = 10;

/** The broker's side: Basic authentication with an agent token as the password, for many agents in turn. */
export function brokerSide(broker: BrokerTarget): GitSide {
  const tokens = createTokenBatch(broker.agents, 100, Date.now);
  return {
    base: `${broker.baseUrl}/git`,
    authorization: (at) => {
      const fresh = tokens.fresh();
      return `Basic ${Buffer.from(`agent:${present(fresh[at % fresh.length], 'token')}`).toString('base64')}`;
    },
  };
}

/** Measures the sides in turn, so that a slow minute of the machine affects both. */
export async function watchGit(
  broker: BrokerTarget,
  nginx: GitSide,
  rounds: number,
  tell: (text: string) => void,
): Promise<GitFindings> {
  const sides = { broker: brokerSide(broker), nginx };
  const found: GitFindings = {
    clone: { broker: [], nginx: [] },
    push: { broker: [], nginx: [] },
    chunked: { broker: [], nginx: [] },
    clones: { broker: 0, nginx: 0 },
    grown: { large: 0, clones: 0 },
    refs: { broker: [], nginx: [] },
  };
  const agent = new Agent({ keepAlive: true, maxSockets: CLONES });
  const both = ['nginx', 'broker'] as const;
  try {
    for (const side of both) for (let at = 0; at < WARM_UP; at++) await advertise(sides[side], agent, at);
    for (let at = 0; at < ADVERTISEMENTS; at++)
      for (const side of both) found.refs[side].push(await timed(() => advertise(sides[side], agent, at)));
    const large = watchMemory(broker.pid);
    for (let round = 0; round < rounds; round++)
      for (const side of both) {
        found.clone[side].push(rate(LARGE_MIB, await timed(() => clone(sides[side], agent, LARGE_MIB))));
        found.push[side].push(rate(LARGE_MIB, await timed(() => pushLarge(sides[side], agent, 'whole'))));
        found.chunked[side].push(rate(LARGE_MIB, await timed(() => pushLarge(sides[side], agent, 'chunked'))));
      }
    found.grown.large = await large.end();
    const many = watchMemory(broker.pid);
    for (const side of both) {
      const clones = () =>
        Promise.all(Array.from({ length: CLONES }, (_, at) => clone(sides[side], agent, CLONE_MIB, at)));
      found.clones[side] = rate(CLONE_MIB * CLONES, await timed(clones));
    }
    found.grown.clones = await many.end();
  } finally {
    agent.destroy();
  }
  tell(
    `git: clone ${show(found.clone.broker)} of nginx's ${show(found.clone.nginx)}, push ${show(found.push.broker)} of ${show(found.push.nginx)}, in chunks ${show(found.chunked.broker)} of ${show(found.chunked.nginx)}`,
  );
  return found;
}

/** Starts RATE pushes per second, whether earlier ones are finished or not. `body`: the recorded request body of git. */
export async function watchPushes(
  broker: BrokerTarget,
  body: Buffer,
  tell: (text: string) => void,
): Promise<PushFindings> {
  const side = brokerSide(broker);
  const agent = new Agent({ keepAlive: true });
  const before = await broker.auditCount();
  const latency: number[] = [];
  let failed = 0;
  const one = async (at: number) => {
    try {
      latency.push(await timed(() => pushSmall(side, agent, body, at)));
    } catch {
      failed++;
    }
  };
  for (let at = 0; at < RATE; at++) await one(at);
  latency.length = 0;
  const started = performance.now();
  const pushes: Promise<void>[] = [];
  for (let at = 0; at < RATE * PUSHING_SECONDS; at++) {
    const due = started + (at * 1_000) / RATE;
    if (due > performance.now()) await wait(due - performance.now());
    pushes.push(one(at));
  }
  await Promise.all(pushes);
  const seconds = (performance.now() - started) / 1_000;
  agent.destroy();
  const rows = (await broker.auditCount()) - before;
  tell(`git: ${Math.round(latency.length / seconds)} pushes/s, ${rows} rows`);
  return { rate: latency.length / seconds, latency, failed, rows };
}

/** The audit rows of the RATE warm-up pushes and the measured ones: advertisement, probe and pack for each. */
export const ROWS_OF_PUSHES = 3 * (RATE + RATE * PUSHING_SECONDS);

const show = (rates: readonly number[]): string => `${(quantile(rates, 0.5) / 1e6).toFixed(0)} MB/s`;
const rate = (megabytes: number, ms: number): number => (megabytes * MIB * 1_000) / ms;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

const advertise = (side: GitSide, agent: Agent, at: number, service = 'git-upload-pack') =>
  send(side, agent, { at, path: `/acme/1.git/info/refs?service=${service}` });

const clone = (side: GitSide, agent: Agent, megabytes: number, at = 0) =>
  send(side, agent, {
    at,
    path: `/acme/${megabytes}.git/git-upload-pack`,
    type: 'application/x-git-upload-pack-request',
    body: Buffer.from('0032want 7d1b31e74ee336d15cbd21741bc88a537ed063a0\n00000009done\n'),
    expected: megabytes * MIB,
  });

const COMMAND = '7d1b31e74ee336d15cbd21741bc88a537ed063a0 refs/heads/agent/bench\0 report-status';
const HEAD = Buffer.from(`${(COMMAND.length + 45).toString(16).padStart(4, '0')}${'0'.repeat(40)} ${COMMAND}0000`);
const PIECE = Buffer.alloc(MIB, 'PACK');

async function pushLarge(side: GitSide, agent: Agent, how: 'whole' | 'chunked'): Promise<void> {
  const pieces = function* () {
    yield HEAD;
    for (let at = 0; at < LARGE_MIB; at++) yield PIECE;
  };
  const path = '/acme/1.git/git-receive-pack';
  if (how === 'chunked') await send(side, agent, { at: 0, path, type: PUSH, body: PROBE });
  await send(side, agent, {
    at: 0,
    path,
    type: PUSH,
    isChunked: how === 'chunked',
    body: {
      length: HEAD.length + LARGE_MIB * MIB,
      stream: () => Readable.from(pieces(), { objectMode: true, highWaterMark: 1 }),
    },
  });
}

const PUSH = 'application/x-git-receive-pack-request';
/** The probe that git sends before a chunked body, so that the server can ask for a password first. */
const PROBE = Buffer.from('0000');

async function pushSmall(side: GitSide, agent: Agent, body: Buffer, at: number): Promise<void> {
  await advertise(side, agent, at, 'git-receive-pack');
  const path = '/acme/1.git/git-receive-pack';
  await send(side, agent, { at, path, type: PUSH, body: PROBE });
  await send(side, agent, { at, path, type: PUSH, body, isChunked: true });
}

type Streamed = { length: number; stream(): Readable };
type Asked = {
  at: number;
  path: string;
  type?: string;
  body?: Buffer | Streamed;
  /** Whether the body is sent chunked, without a Content-Length. */
  isChunked?: boolean;
  /** The expected size of the answer in bytes; absent when it is not checked. */
  expected?: number;
};

/** Sends one request and reads its answer to the end. Rejects when the status is not 200 or the length is not the expected one. */
async function send(side: GitSide, agent: Agent, { at, path, type, body, isChunked, expected }: Asked): Promise<void> {
  const authorization = side.authorization(at);
  const length = body?.length;
  const headers = {
    'user-agent': 'git/2.39.5',
    ...(authorization !== undefined && { authorization }),
    ...(type !== undefined && { 'content-type': type }),
    ...(isChunked ? { 'transfer-encoding': 'chunked' } : length !== undefined && { 'content-length': length }),
  };
  const asked = request(`${side.base}${path}`, { agent, method: body ? 'POST' : 'GET', headers });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject);
  });
  if (body && 'stream' in body) await pipeline(body.stream(), asked);
  else asked.end(body);
  const answer = await answered;
  let bytes = 0;
  const count = new Writable({
    write(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      done();
    },
  });
  await pipeline(answer, count);
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
  if (expected !== undefined && bytes !== expected) throw new Error(`${path}: ${bytes} bytes instead of ${expected}`);
}
