/** The configuration that `connect` writes, read by the clients. test/cli/client-formats.test.ts checks other clients by their documented formats. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configFile } from '../../bin/clients/client-config.ts';
import type { ClientId } from '../../bin/clients/clients.ts';
import type { Machine } from '../../bin/machine.ts';
import { makeKeyPair } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { runCommand } from '../world/command.ts';
import { fencesOf } from '../world/markdown.ts';
import { newFolder } from '../world/stores.ts';
import { binOf } from './programs.ts';

const skipped = (path: string) => (existsSync(path) ? undefined : 'not installed; see CLIENT_PROGRAMS');

/** Creates a home folder with the user's own settings and the entry that `connect` adds, for an agent with a profile there. */
async function connected(client: ClientId, mine: string) {
  const home = newFolder();
  const machine: Machine = { platform: process.platform, environment: {}, home, cwd: home };
  const file = configFile(client, machine, 'user')!;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, mine, { mode: 0o640 });
  const profile = join(home, 'profile.json');
  const private_key = makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' });
  writeFileSync(profile, JSON.stringify({ url: 'http://127.0.0.1:1', agent_id: 'a', owner_id: 'o', private_key }), {
    mode: 0o600,
  });
  const run = (...words: string[]) => runCommand(['connect', client, ...words], { cwd: home, env: { HOME: home } });
  const { code, stdout, stderr } = await run('--profile', profile);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).not.toContain('CANARY');
  const ask = (program: string, words: readonly string[]) =>
    spawnSync(program, words, {
      cwd: home,
      encoding: 'utf8',
      timeout: 60_000,
      env: { PATH: process.env.PATH, HOME: home },
    });
  const undo = async () => {
    const undone = await run('--undo');
    expect([undone.code, undone.stdout]).toEqual([0, expect.stringContaining('Taken out of')]);
    const left = readFileSync(file, 'utf8');
    expect(left).not.toContain('agent-broker');
    for (const line of mine.split('\n').filter((one) => !/^[{}]?$/.test(one))) expect(left).toContain(line);
  };
  return { profile, ask, undo };
}

// Some clients take half a minute to start on a busy machine.
describe('the configuration that connect writes is read by', { timeout: 360_000 }, () => {
  const codex = skipped(binOf('codex'));
  test.skipIf(codex)(`Codex, "codex mcp get"${codex ? ` (skipped: ${codex})` : ''}`, async () => {
    const { ask, profile, undo } = await connected(
      'codex',
      '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "CANARY"\n',
    );
    const { stdout, status, stderr } = ask(binOf('codex'), ['mcp', 'get', 'agent-broker', '--json']);
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      enabled: true,
      transport: { type: 'stdio', command: process.execPath, env: { AGENT_BROKER_PROFILE: profile } },
    });
    await undo();
    const { stdout: left } = ask(binOf('codex'), ['mcp', 'list', '--json']);
    expect(JSON.parse(left).map(({ name }: { name: string }) => name)).toEqual(['other']);
  });

  const gemini = skipped(binOf('gemini'));
  test.skipIf(gemini)(`Gemini CLI, "gemini mcp list"${gemini ? ` (skipped: ${gemini})` : ''}`, async () => {
    const { ask, undo } = await connected('gemini', '{\n  // mine\n  "theme": "CANARY"\n}\n');
    const { stdout, stderr } = ask(process.execPath, [binOf('gemini'), 'mcp', 'list']);
    expect(stdout + stderr).toMatch(/agent-broker: \S+ \S+ mcp \(stdio\)/);
    await undo();
  });

  const copilot = skipped(binOf('copilot'));
  test.skipIf(copilot)(`GitHub Copilot CLI, "copilot mcp"${copilot ? ` (skipped: ${copilot})` : ''}`, async () => {
    const { ask, undo } = await connected('copilot', '{\n  "other": "CANARY"\n}\n');
    const { stdout, stderr, status } = ask(binOf('copilot'), ['mcp', 'get', 'agent-broker']);
    expect(status, stderr).toBe(0);
    for (const line of ['Type: local', 'Tools: * (all)', 'AGENT_BROKER_PROFILE: ***']) expect(stdout).toContain(line);
    await undo();
    expect(ask(binOf('copilot'), ['mcp', 'list']).stdout).not.toContain('agent-broker');
  });

  const qwen = skipped(binOf('qwen'));
  test.skipIf(qwen)(`Qwen Code, "qwen mcp list"${qwen ? ` (skipped: ${qwen})` : ''}`, async () => {
    // Qwen Code rewrites its settings at its start, in the format of its version and without comments.
    const { ask, undo } = await connected('qwen', '{\n  "ui": {\n    "theme": "CANARY"\n  }\n}\n');
    const { stdout, stderr } = ask(process.execPath, [binOf('qwen'), 'mcp', 'list']);
    expect(stdout + stderr).toMatch(/agent-broker: \S+ \S+ mcp \(stdio\)/);
    await undo();
  });

  const opencode = skipped(binOf('opencode'));
  test.skipIf(opencode)(`opencode, "opencode debug config"${opencode ? ` (skipped: ${opencode})` : ''}`, async () => {
    const { ask, profile, undo } = await connected('opencode', '{\n  // mine\n  "username": "CANARY"\n}\n');
    const { stdout, stderr, status } = ask(binOf('opencode'), ['debug', 'config']);
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout).mcp['agent-broker']).toMatchObject({
      type: 'local',
      enabled: true,
      environment: { AGENT_BROKER_PROFILE: profile },
    });
    await undo();
  });

  const claude = skipped(binOf('claude'));
  test.skipIf(claude)(`Claude Code, "claude mcp get"${claude ? ` (skipped: ${claude})` : ''}`, async () => {
    const { ask, profile, undo } = await connected('claude-code', '{\n  "theme": "CANARY"\n}\n');
    const { stdout, stderr, status } = ask(binOf('claude'), ['mcp', 'get', 'agent-broker']);
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/Type: stdio/);
    for (const words of [`Command: ${process.execPath}`, `AGENT_BROKER_PROFILE=${profile}`])
      expect(stdout).toContain(words);
    await undo();
    expect(ask(binOf('claude'), ['mcp', 'get', 'agent-broker']).status).not.toBe(0);
  });

  test.skipIf(claude)('Claude Code accepts the command of docs/clients/remote.md', () => {
    const [line = ''] = fencesOf(readFileSync(join(ROOT, 'docs/clients/remote.md'), 'utf8'))
      .filter(({ text }) => text.startsWith('claude mcp add'))
      .map(({ text }) => text.trim());
    const home = newFolder();
    const [, ...words] = line.split(' ');
    const { status, stderr } = spawnSync(binOf('claude'), words, {
      cwd: home,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: home },
    });
    expect(status, stderr).toBe(0);
    expect(readFileSync(join(home, '.claude.json'), 'utf8')).toMatch(
      /"broker": \{\s+"type": "http",\s+"url": "https:\/\/broker\.example\/mcp"/,
    );
  });
});
