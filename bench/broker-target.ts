/** A broker for the bench: seeded, served in a process of its own, with direct access to its audit. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../broker/environment/config.ts';
import { runFile } from '../broker/process/run-file.ts';
import { present } from '../broker/runtime/present.ts';
import { openAudit } from './audit.ts';
import { freePort } from './free-port.ts';
import { stopper, waitForHealth } from './process.ts';
import { publishedPackage } from './published.ts';
import { BENCH_OWNER, seed } from './seed.ts';
import { type AgentKey, type BenchAgent, makeAgentKeys } from './tokens.ts';

export type BrokerOptions = {
  /** How many active agents are stored, each with a grant on the bench's platform. */
  agents: number;
  /** How many of these agents make calls, evenly spread over all; 1,000 by default. */
  callers?: number;
  /** Origin of the bench's upstream, `http://127.0.0.1:port`: the `base_url` of the platform. */
  upstreamUrl: string;
  /** Origin of the bench's code host. When present, every agent may clone and push there, and bodies may have 1 GiB. */
  gitUrl?: string;
  /** Whether the agents may send and get files, events and items without an approval. */
  streams?: boolean;
  /** Further environment variables of the broker. */
  settings?: Readonly<Record<string, string>>;
  /** Origin of the soak's platform, which people connect with their own accounts. */
  peopleUrl?: string;
} & ({ store: 'sqlite' } | { store: 'postgres'; databaseUrl: string });

export type BrokerTarget = {
  baseUrl: string;
  upstreamUrl: string;
  /** The serving process; its descendants are measured with it. */
  pid: number;
  /** The agents that make calls. */
  agents: readonly BenchAgent[];
  /** Milliseconds from `npm start` to the first 200 of `/health`, on the seeded store. */
  healthAfterMs: number;
  /** Returns the present number of audit rows. */
  auditCount(): Promise<number>;
  /** Verifies the receipt of every audit row against the published key set. */
  verifyReceipts(): Promise<{ verified: number; failed: number }>;
  /** Returns a session token of the bench's owner. */
  ownerToken(): Promise<string>;
  /** Returns the number of transactions of the database so far; NaN on SQLite, which does not count them. */
  statementCount(): Promise<number>;
  stop(): Promise<void>;
};

const CALLERS = 1_000;
/** Enough keys to use the broker's key cache as real agents do, and few enough to be generated in seconds. */
const SHARED_KEYS = 64;
const HEALTHY_WITHIN_MS = 20_000;
const ROOT = join(import.meta.dirname, '..');

/**
 * Returns a function that starts brokers. Each has a seeded store in a temporary folder and is served by the published package, with rate
 * limits raised (`AGENT_BROKER_LIMIT_FACTOR`) and the upstream allowed (`AGENT_BROKER_ALLOW_PRIVATE`).
 */
export function brokerStarter(): (options: BrokerOptions) => Promise<BrokerTarget> {
  let keys: Promise<AgentKey[]> | undefined;
  return async (options) => {
    keys ??= makeAgentKeys(SHARED_KEYS);
    const dataFolder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-'));
    const remove = () => rmSync(dataFolder, { recursive: true, force: true });
    try {
      return await startOne(options, dataFolder, await keys, remove);
    } catch (error) {
      remove();
      throw error;
    }
  };
}

async function startOne(
  options: BrokerOptions,
  dataFolder: string,
  keys: readonly AgentKey[],
  remove: () => void,
): Promise<BrokerTarget> {
  const { upstreamUrl, gitUrl, peopleUrl } = options;
  const databaseUrl = options.store === 'postgres' ? options.databaseUrl : undefined;
  const port = await freePort();
  const settings: Record<string, string> = {
    PORT: String(port),
    LOG_LEVEL: 'error',
    AGENT_BROKER_DATA: dataFolder,
    AGENT_BROKER_LIMIT_FACTOR: '1000000',
    AGENT_BROKER_ALLOW_PRIVATE: [upstreamUrl, gitUrl].flatMap((url) => (url ? new URL(url).host : [])).join(','),
    ...(gitUrl !== undefined && { GIT_MAX_REQUEST_BYTES: String(1024 ** 3) }),
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...options.settings,
  };
  const { callers = CALLERS } = options;
  const agents = await seed(readConfig(settings), {
    agents: options.agents,
    callers,
    upstreamUrl,
    gitUrl,
    peopleUrl,
    streams: options.streams === true,
    keys,
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  const healthAfterMs = await timeOfStart(settings, baseUrl);
  // The measured broker runs without npm, which would add its own memory.
  const { child } = await serveBroker(settings, baseUrl);
  const end = stopper(child);
  const audit = openAudit({ dataFolder, databaseUrl });
  return {
    baseUrl,
    upstreamUrl,
    pid: present(child.pid, 'process'),
    agents,
    healthAfterMs,
    auditCount: audit.count,
    verifyReceipts: async () => {
      const answer = await fetch(`${baseUrl}/.well-known/svc-receipt-keys.json`);
      return await audit.verify((await answer.json()) as { keys: { kid: string }[] });
    },
    ownerToken: () => ownerTokenOf(dataFolder),
    statementCount: audit.transactions,
    stop: async () => {
      await end();
      remove();
    },
  };
}

/** Serves an existing store with the published package. Returns the process and the milliseconds until it was healthy. */
export async function serveBroker(
  settings: Record<string, string>,
  baseUrl: string,
): Promise<{ child: ChildProcess; healthAfterMs: number }> {
  const launcher = join(await publishedPackage(), 'bin', 'agent-broker.js');
  return await start(process.execPath, [launcher, 'serve'], settings, baseUrl);
}

/** Returns a session token of the bench's owner at the broker that runs with this data folder. */
export async function ownerTokenOf(dataFolder: string): Promise<string> {
  const { url, local_token } = JSON.parse(readFileSync(runFile(dataFolder), 'utf8'));
  const answer = await fetch(`${url}/owner/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${local_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: BENCH_OWNER }),
  });
  return ((await answer.json()) as { token: string }).token;
}

/** Returns the milliseconds from `npm start` until `/health` answers 200, and stops that broker. */
async function timeOfStart(settings: Record<string, string>, baseUrl: string): Promise<number> {
  const { child, healthAfterMs } = await start('npm', ['start', '--silent'], settings, baseUrl);
  // npm ends without stopping its child process, so the signal goes to the whole process group.
  const end = stopper(child);
  process.kill(-present(child.pid, 'process'), 'SIGTERM');
  await end();
  await waitForSilence(baseUrl);
  return healthAfterMs;
}

async function start(command: string, args: readonly string[], settings: Record<string, string>, baseUrl: string) {
  const startedAt = performance.now();
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DRAIN_SECONDS: '0', ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: command === 'npm',
  });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    const text = bytes.toString();
    said = (said + text).slice(-4_096);
    // Log lines are errors and are passed on; the broker's messages for people would disturb the table of figures.
    if (text.startsWith('{')) process.stderr.write(text);
  });
  try {
    return { child, healthAfterMs: await waitForHealth(`${baseUrl}/health`, startedAt, HEALTHY_WITHIN_MS) };
  } catch (error) {
    await stopper(child)();
    throw new Error(`${(error as Error).message} The broker said: ${said}`, { cause: error });
  }
}

/** Waits until nothing listens at this URL: the next broker needs the port and the folder. */
async function waitForSilence(url: string): Promise<void> {
  for (let tries = 500; tries > 0; tries--) {
    const answered = await fetch(url).then(
      () => true,
      () => false,
    );
    if (!answered) return;
    await wait(20);
  }
  throw new Error(`The broker at ${url} did not stop.`);
}
