/** `agent-broker mcp` as a client meets it: how soon it lists its tools, what it adds to a call, and what it keeps while it waits. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { signedSend } from '../mcp/client/signed-send.ts';
import type { BrokerTarget } from './broker-target.ts';
import { residentBytes, stopper } from './process.ts';
import { READ } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

export type McpFindings = {
  /** Milliseconds from the start of the process to its tools/list, with what the agent may do in it. */
  listed: number[];
  /** Resident bytes after that, at rest. */
  atRest: number;
  /** Milliseconds of a governed read as a tool, less those of the same read by HTTP with a token that was signed before; in pairs. */
  added: number[];
};

const STARTS = 10;
const CALLS = 300;
const WARMUP_CALLS = 30;
const REST_MS = 2_000;
const ROOT = join(import.meta.dirname, '..');

type Running = { child: ChildProcess; request(method: string, params: object): Promise<Record<string, unknown>> };

/** Starts it as published, which is JavaScript: a checkout strips types at each start. */
export async function watchMcp(broker: BrokerTarget, tell: (text: string) => void): Promise<McpFindings> {
  tell('building what is published, for the MCP server');
  // Below node_modules, where what it imports is found.
  const built = join(ROOT, 'node_modules', '.cache', 'bench-mcp');
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
  const compiled = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', built], { cwd: ROOT, stdio: 'inherit' });
  if (compiled.status !== 0) throw new Error('what is published could not be built');
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-mcp-'));
  try {
    const start = starter(join(built, 'bin', 'quick-mcp.js'), writeProfile(folder, broker));
    tell(`starting the MCP server ${STARTS} times`);
    const listed: number[] = [];
    for (let turn = 0; turn < STARTS; turn++) {
      const { ms, stop } = await start();
      listed.push(ms);
      await stop();
    }
    const { running, stop } = await start();
    try {
      await wait(REST_MS);
      const atRest = residentBytes([running.child.pid!]);
      tell(`calling a tool ${CALLS} times`);
      return { listed, atRest, added: await compareCalls(broker, running) };
    } finally {
      await stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeProfile(folder: string, { agents, baseUrl }: BrokerTarget): string {
  const { agentId, ownerId, privateKey } = agents[0]!;
  const private_key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  const profile = join(folder, 'agent.json');
  const content = { url: baseUrl, agent_id: agentId, owner_id: ownerId, private_key };
  writeFileSync(profile, JSON.stringify(content), { mode: 0o600 });
  return profile;
}

const starter = (entry: string, profile: string) => async () => {
  const startedAt = performance.now();
  const code = `const { quickMcp } = await import(${JSON.stringify(entry)}); await quickMcp(['--profile', ${JSON.stringify(profile)}]);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] });
  const running = speak(child);
  const clientInfo = { name: 'bench', version: '1' };
  await running.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  const { tools } = (await running.request('tools/list', {})) as { tools: { description: string }[] };
  const ms = performance.now() - startedAt;
  if (!tools[0]?.description.includes(READ.scope)) throw new Error('the MCP server listed its tools without any scope');
  return { ms, running, stop: stopper(child) };
};

function speak(child: ChildProcess): Running {
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  createInterface({ input: child.stdout! }).on('line', (line) => {
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
        child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id: last, method, params })}\n`);
      }),
  };
}

async function compareCalls(broker: BrokerTarget, running: Running): Promise<number[]> {
  const tokens = createTokenBatch(broker.agents.slice(0, 1), 1, Date.now);
  const send = signedSend({ url: broker.baseUrl, token: () => tokens.fresh()[0]! });
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
