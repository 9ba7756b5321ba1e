/** `agent-broker mcp` as a client uses it: the time until it lists its tools, the time that it adds to a call, and its memory at rest. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';
import { signedSend } from '../mcp/client/signed-send.ts';
import type { BrokerTarget } from './broker-target.ts';
import { residentBytes, stopper } from './process.ts';
import { publishedPackage } from './published.ts';
import { READ } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

/** Milliseconds from the start of a process to its tools/list answer, with a warm compile cache. */
export type Starts = {
  /** Started one after the other; the tools list includes the agent's permissions. */
  alone: number[];
  /** AT_ONCE started at the same moment, repeatedly; with the permissions or without. */
  together: number[];
};

export type McpFindings = {
  /** The published package, which is JavaScript. */
  built: Starts;
  checkout: Starts;
  /** For comparison: milliseconds until AT_ONCE bare Node processes, started at the same moment, have each written a line. */
  bareTogether: number[];
  /** Resident bytes of a server at rest, after its start. */
  atRest: number;
  /** Milliseconds that a governed read as a tool takes more than the same read by HTTP with a token signed before; measured in pairs. */
  added: number[];
};

const STARTS = 10;
/** Concurrent starts: clients start all of their servers at the same time, and people start several clients. */
const AT_ONCE = 6;
const ROUNDS = 20;
const CALLS = 300;
const WARMUP_CALLS = 30;
const REST_MS = 2_000;
const ROOT = join(import.meta.dirname, '..');
export const LAUNCHER = join('bin', 'agent-broker.js');

type Running = { child: ChildProcess; request(method: string, params: object): Promise<Record<string, unknown>> };

/** Measures `agent-broker mcp` from the checkout, where Node strips types, and from the published package. Clients run Node with this file. */
export async function watchMcp(broker: BrokerTarget, tell: (text: string) => void): Promise<McpFindings> {
  const published = await publishedPackage();
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-mcp-'));
  try {
    const profile = writeProfile(folder, broker);
    const starts = async (root: string): Promise<Starts> => {
      const start = starter(join(root, LAUNCHER), profile, folder);
      tell(`starting the MCP server ${STARTS} times, then ${ROUNDS} times ${AT_ONCE} at the same moment, from ${root}`);
      return await watchStarts(start);
    };
    const built = await starts(published);
    const checkout = await starts(ROOT);
    const bareTogether: number[] = [];
    for (let round = 0; round < ROUNDS; round++)
      bareTogether.push(...(await Promise.all(Array.from({ length: AT_ONCE }, startBare))));
    const { running, stop } = await starter(join(published, LAUNCHER), profile, folder)();
    try {
      await wait(REST_MS);
      const atRest = residentBytes([present(running.child.pid, 'process')]);
      tell(`calling a tool ${CALLS} times`);
      return { built, checkout, bareTogether, atRest, added: await compareCalls(broker, running) };
    } finally {
      await stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Start = ReturnType<typeof starter>;

async function watchStarts(start: Start): Promise<Starts> {
  // The first process compiles, and writes the compile cache once all modules are loaded.
  const first = await start();
  await first.running.request('tools/call', { name: 'list_permissions', arguments: {} });
  await first.stop();
  const alone: number[] = [];
  for (let turn = 0; turn < STARTS; turn++) {
    const { ms, stop, says } = await start();
    if (!says.includes(READ.scope)) throw new Error('the MCP server listed its tools without any scope');
    alone.push(ms);
    await stop();
  }
  const together: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const all = await Promise.all(Array.from({ length: AT_ONCE }, start));
    together.push(...all.map(({ ms }) => ms));
    await Promise.all(all.map(({ stop }) => stop()));
  }
  return { alone, together };
}

async function startBare(): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['-e', 'console.log(1)'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((written) => child.stdout.once('data', written));
  return performance.now() - startedAt;
}

/** Writes the profile of an agent to this folder. Returns its path. */
export function writeProfile(folder: string, { agents, baseUrl }: BrokerTarget): string {
  const { agentId, ownerId, privateKey } = present(agents[0], 'agent');
  const private_key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  const profile = join(folder, 'agent.json');
  const content = { url: baseUrl, agent_id: agentId, owner_id: ownerId, private_key };
  writeFileSync(profile, JSON.stringify(content), { mode: 0o600 });
  return profile;
}

/** `home`: the folder of the compile cache. */
const starter = (launcher: string, profile: string, home: string) => async () => {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [launcher, 'mcp', '--profile', profile], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, XDG_CACHE_HOME: home },
  });
  const running = speak(child);
  const clientInfo = { name: 'bench', version: '1' };
  await running.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  const { tools } = (await running.request('tools/list', {})) as { tools: { description: string }[] };
  const ms = performance.now() - startedAt;
  return { ms, running, says: tools[0]?.description ?? '', stop: stopper(child) };
};

function speak(child: ChildProcess): Running {
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  createInterface({ input: present(child.stdout, 'output') }).on('line', (line) => {
    const { id, result } = JSON.parse(line);
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  let last = 0;
  return {
    child,
    request: (method, params) =>
      new Promise((answered) => {
        waiting.set(++last, answered);
        child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id: last, method, params })}\n`);
      }),
  };
}

async function compareCalls(broker: BrokerTarget, running: Running): Promise<number[]> {
  const tokens = createTokenBatch(broker.agents.slice(0, 1), 1, Date.now);
  const send = signedSend({ url: broker.baseUrl, token: () => present(tokens.fresh()[0], 'token') });
  const { method: _, ...args } = READ;
  const timed = async (call: () => Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await call();
    return performance.now() - startedAt;
  };
  const plain = async () => {
    const { status } = await send({ method: 'POST', path: '/v1/actions', body: READ });
    if (status !== 200) throw new Error(`a governed read was answered with ${status}`);
  };
  const tool = async () => {
    const answer = await running.request('tools/call', { name: 'read_platform', arguments: args });
    if (answer.isError) throw new Error(`a governed read as a tool was answered with ${JSON.stringify(answer)}`);
  };
  const added: number[] = [];
  for (let turn = 0; turn < CALLS + WARMUP_CALLS; turn++) {
    const [without, within] = [await timed(plain), await timed(tool)];
    if (turn >= WARMUP_CALLS) added.push(within - without);
  }
  return added;
}
