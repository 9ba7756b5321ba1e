/** `agent-broker run` as a command uses it: the time that its sidecar adds to a request to the raw proxy, and its memory at rest. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';
import type { BrokerTarget } from './broker-target.ts';
import { LAUNCHER, writeProfile } from './mcp.ts';
import { residentBytes, stopper } from './process.ts';
import { publishedPackage } from './published.ts';
import { BENCH_PLATFORM_ID, READ } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

export type SidecarFindings = {
  /** Resident bytes of the sidecar process and of a command that only sleeps. */
  atRest: number;
  /** Milliseconds that a raw read through the sidecar takes more than the same read with a token signed before; measured in pairs. */
  added: number[];
};

const CALLS = 1_000;
const WARMUP_CALLS = 500;
const REST_MS = 2_000;
/** The command: prints its variables and sleeps. It is a shell, whose memory is negligible compared with the sidecar's. */
const COMMAND = `printf '["%s","%s"]\\n' "$AGENT_BROKER_RUN_URL" "$AGENT_BROKER_RUN_KEY"; exec sleep 3600`;

export async function watchSidecar(broker: BrokerTarget, tell: (text: string) => void): Promise<SidecarFindings> {
  const launcher = join(await publishedPackage(), LAUNCHER);
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-run-'));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const words = [launcher, 'run', '--profile', writeProfile(folder, broker), '--', 'sh', '-c', COMMAND];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const stop = stopper(child);
  try {
    const said = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (text) => resolve(String(text)));
      child.once('exit', (code) => reject(new Error(`agent-broker run ended with code ${code}`)));
    });
    const [url, key] = JSON.parse(said) as [string, string];
    await wait(REST_MS);
    const atRest = residentBytes([present(child.pid, 'process')]);
    tell(`reading ${CALLS} times through the sidecar, and as often without it`);
    const tokens = createTokenBatch(broker.agents.slice(0, 1), 1, Date.now);
    const path = `/proxy/${BENCH_PLATFORM_ID}${READ.endpoint}`;
    const plain = () => read(`${broker.baseUrl}${path}`, present(tokens.fresh()[0], 'token'), agent);
    const within = () => read(`${url}${path}`, key, agent);
    const added: number[] = [];
    for (let turn = 0; turn < CALLS + WARMUP_CALLS; turn++) {
      const [without, through] = [await timed(plain), await timed(within)];
      if (turn >= WARMUP_CALLS) added.push(through - without);
    }
    return { atRest, added };
  } finally {
    agent.destroy();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function timed(call: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await call();
  return performance.now() - startedAt;
}

async function read(url: string, token: string, agent: Agent): Promise<void> {
  const asked = request(url, { agent, headers: { authorization: `Bearer ${token}` } });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject).end();
  });
  for await (const _ of answer);
  if (answer.statusCode !== 200) throw new Error(`a raw read was answered with ${answer.statusCode}`);
}
