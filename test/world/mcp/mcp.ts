/** MCP clients of an agent: the command as a real process, controlled line by line or by an SDK's client. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { TestAgent } from '../agent.ts';
import { BIN } from '../checkout.ts';
import { newFolder } from '../stores.ts';

/** Not the whole environment: the test runner adds variables of its own. */
export const BARE: Record<string, string> = { PATH: process.env.PATH!, HOME: process.env.HOME ?? '/' };

/** Writes the agent's profile, as `agent create` does. Returns its path, in a folder of its own. */
export function writeProfile(agent: TestAgent, folder = newFolder(), change: Record<string, unknown> = {}): string {
  const path = join(mkdtempSync(join(folder, 'profile-')), 'agent.json');
  const content = {
    url: agent.baseUrl,
    agent_id: agent.agentId,
    owner_id: agent.ownerId,
    private_key: agent.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }),
    ...change,
  };
  writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
  return path;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
export type Message = any;

/** The metadata that a client of 2026-07-28 sends with each request. */
export const envelope = (capabilities: Record<string, unknown> = {}) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
});

export type McpProcess = {
  child: ChildProcess;
  /** All received messages that are not answers. */
  told: Message[];
  /** Every line on standard output, unchanged. */
  lines: string[];
  stderr(): string;
  /** Sends a request and waits for its answer: `{result}` or `{error}`. */
  request(method: string, params?: unknown, id?: number): Promise<Message>;
  notify(method: string, params?: unknown): void;
  /** Sends bytes unchanged. */
  write(bytes: string | Uint8Array): void;
  /** Returns the next message from now on that matches. */
  next(matches: (message: Message) => boolean): Promise<Message>;
  ended: Promise<number | null>;
};

/** Starts `agent-broker mcp`; it ends with the test, or as `after` schedules it. */
export function startMcp(
  profile: string,
  words: readonly string[] = [],
  env: Record<string, string> = {},
  after: (end: () => Promise<void>) => void = onTestFinished,
): McpProcess {
  const child = spawn(process.execPath, [BIN, 'mcp', '--profile', profile, ...words], {
    env: { ...BARE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  const ended = new Promise<number | null>((over) => child.once('close', over));
  const waiting = new Set<(message: Message) => boolean>();
  const told: Message[] = [];
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    const message = JSON.parse(line);
    if (message.id === undefined || message.method !== undefined) told.push(message);
    for (const take of waiting) if (take(message)) waiting.delete(take);
  });
  const next = (matches: (message: Message) => boolean): Promise<Message> =>
    new Promise((found) => {
      waiting.add((message) => {
        const taken = matches(message);
        if (taken) found(message);
        return taken;
      });
    });
  let last = 0;
  const write = (bytes: string | Uint8Array) => void child.stdin.write(bytes);
  after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    told,
    lines,
    stderr: () => stderr,
    next,
    write,
    notify: (method, params = {}) => write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`),
    request: (method, params = {}, id = ++last) => {
      const answer = next((message) => message.id === id && message.method === undefined);
      write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return answer;
    },
    ended,
  };
}

/** Sends `initialize` like clients up to 2025-11-25. Returns the server's answer. */
export async function shakeHands(mcp: McpProcess, capabilities: Record<string, unknown> = {}, version = '2025-11-25') {
  const answer = await mcp.request('initialize', {
    protocolVersion: version,
    capabilities,
    clientInfo: { name: 'test', version: '1' },
  });
  mcp.notify('notifications/initialized');
  return answer.result;
}

/** Sends tools/call after `initialize`. */
export const callTool = async (mcp: McpProcess, name: string, args: unknown, more: Record<string, unknown> = {}) =>
  (await mcp.request('tools/call', { name, arguments: args, ...more })).result;
