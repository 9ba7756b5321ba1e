import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse } from 'jsonc-parser';
import { beforeAll, describe, expect, test } from 'vitest';
import { commandHost, startServe } from '../world/command.ts';
import { BARE } from '../world/mcp/mcp.ts';
import { newFolder } from '../world/stores.ts';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
const home = join(folder, 'home');
const project = join(folder, 'shop');

beforeAll(async () => {
  for (const path of [home, project]) mkdirSync(path);
  await startServe([], { cwd: folder, env: { ...BARE, AGENT_BROKER_DATA: data } });
});

const run = (...words: string[]) => hosted(words, { cwd: project, env: { HOME: home, AGENT_BROKER_DATA: data } });

const READS = ['--policy', 'sandbox', '--grant', 'sandbox=sandbox:issues.read'];
const agents = async () =>
  JSON.parse((await run('agent', 'list', '--json')).stdout).map(({ name }: { name: string }) => name);

describe('agent-broker connect', () => {
  test('creates an agent and adds it to a client, keeps other entries, and --undo restores the file', async () => {
    const config = join(home, '.cursor', 'mcp.json');
    const before = '{\n  // mine\n  "mcpServers": {\n    "other": { "command": "x" }\n  }\n}\n';
    mkdirSync(join(home, '.cursor'));
    writeFileSync(config, before, { mode: 0o640 });
    const words = ['connect', 'cursor', '--name', 'cursor of ann', ...READS];

    const dry = await run(...words, '--dry-run');
    expect(dry.code, dry.stderr).toBe(0);
    expect(dry.stdout).toContain('Nothing was done.');
    expect([readFileSync(config, 'utf8'), await agents()]).toEqual([
      before,
      expect.not.arrayContaining(['cursor of ann']),
    ]);

    const made = await run(...words);
    expect(made.code, made.stderr).toBe(0);
    const profile = join(data, 'profiles', 'cursor-of-ann.json');
    for (const word of [config, profile, '+ "agent-broker": {']) expect(made.stdout).toContain(word);
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('// mine');
    expect(text + made.stdout).not.toMatch(/PRIVATE KEY|inv_/);
    expect([statSync(profile).mode & 0o777, statSync(config).mode & 0o777]).toEqual([0o600, 0o640]);

    const { other, 'agent-broker': entry } = parse(text).mcpServers;
    expect(other).toEqual({ command: 'x' });
    const client = new Client({ name: 'cursor', version: '1' });
    await client.connect(new StdioClientTransport({ ...entry, env: { ...BARE, ...entry.env } }));
    const read = { platform: 'sandbox', scope: 'sandbox:issues.read', endpoint: '/issues/1' };
    const answer = await client.callTool({ name: 'read_platform', arguments: read });
    expect(answer.structuredContent).toMatchObject({ status: 'answered', upstream_status: 200 });
    await client.close();

    const again = await run('connect', 'cursor', '--name', 'cursor of ann');
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('Nothing to change')]);
    const refused = await run(...words);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('there already')]);
    const undone = await run('connect', 'cursor', '--undo', '--data', data, '--organisation', 'home');
    expect(undone.stdout).toContain(`agent revoke AGENT_ID --organisation home --data ${data}`);
    expect(undone.stdout).toContain('- "agent-broker": {');
    expect(undone.stdout).toContain('Restart Cursor, so that it stops the server.');
    expect(undone.stdout).not.toContain('shows it in Settings');
    expect(readFileSync(config, 'utf8')).toBe(before);
    expect(existsSync(profile)).toBe(true);
  });

  test('--project with an existing profile writes through a symlink, and creates no agent', async () => {
    const kept = join(folder, 'dotfiles.json');
    writeFileSync(kept, '{}');
    mkdirSync(join(project, '.vscode'));
    symlinkSync(kept, join(project, '.vscode', 'mcp.json'));
    const profile = join(data, 'profiles', 'default.json');
    const before = await agents();
    const { code, stdout, stderr } = await run('connect', 'vscode', '--project', '--profile', profile, '--json');
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ client: 'vscode', change: 'added', agent: 'there already', profile });
    const { servers } = JSON.parse(readFileSync(kept, 'utf8'));
    expect(servers['agent-broker']).toMatchObject({ type: 'stdio', env: { AGENT_BROKER_PROFILE: profile } });
    expect(await agents()).toEqual(before);
  });

  test('prints nothing of other servers, not even when the whole file is one line', async () => {
    const config = join(home, '.claude.json');
    writeFileSync(config, '{"mcpServers":{"other":{"env":{"API_KEY":"CANARY"}}}}', { mode: 0o600 });
    const profile = join(data, 'profiles', 'default.json');
    const outcomes = [
      await run('connect', 'claude-code', '--profile', profile, '--dry-run'),
      await run('connect', 'claude-code', '--profile', profile),
      await run('connect', 'claude-code', '--undo', '--json'),
    ];
    for (const { code, stdout, stderr } of outcomes) {
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain('agent-broker');
      expect(stdout).not.toContain('CANARY');
    }
    expect(parse(readFileSync(config, 'utf8'))).toEqual({ mcpServers: { other: { env: { API_KEY: 'CANARY' } } } });
    expect(statSync(config).mode & 0o777).toBe(0o600);
  });

  test('a dangling symlink stays, and its target is created, readable only by its user', async () => {
    const config = join(home, '.config', 'Claude', 'claude_desktop_config.json');
    const kept = join(folder, 'dotfiles', 'claude.json');
    for (const path of [config, kept]) mkdirSync(dirname(path), { recursive: true });
    symlinkSync(relative(dirname(config), kept), config);
    const profile = join(data, 'profiles', 'default.json');
    const { code, stderr } = await run('connect', 'claude-desktop', '--profile', profile);
    expect(code, stderr).toBe(0);
    expect(lstatSync(config).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(kept, 'utf8')).mcpServers).toHaveProperty('agent-broker');
    expect(statSync(kept).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(kept))).toEqual(['claude.json']);
  });

  test('writes the entry in opencode’s format, keeps other entries, and --undo removes it', async () => {
    const config = join(home, '.config', 'opencode', 'opencode.json');
    mkdirSync(dirname(config), { recursive: true });
    const text = '{\n  // mine\n  "theme": "dark"\n}\n';
    writeFileSync(config, text);
    const made = await run('connect', 'opencode', ...READS);
    expect([made.code, made.stderr]).toEqual([0, '']);
    const written = readFileSync(config, 'utf8');
    expect(written).toContain('// mine');
    expect(written).toMatch(/"type": "local",\s+"enabled": true,\s+"command": \[/);
    expect((await run('connect', 'opencode', '--undo')).code).toBe(0);
    expect(readFileSync(config, 'utf8')).not.toContain('agent-broker');
  });

  test('a suspended agent is connected with a warning; for a revoked or deleted agent nothing is written', async () => {
    const config = join(home, '.codeium', 'windsurf', 'mcp_config.json');
    const words = ['connect', 'windsurf', '--name', 'stopped'];
    expect((await run(...words, ...READS)).code).toBe(0);
    expect((await run('connect', 'windsurf', '--undo')).code).toBe(0);
    const profile = join(data, 'profiles', 'stopped.json');
    const { agent_id: id } = JSON.parse(readFileSync(profile, 'utf8'));
    const git = ['git-setup', '--dry-run', '--profile', profile];

    expect((await run('agent', 'suspend', id, '--reason', 'until Monday')).code).toBe(0);
    for (const line of [words, git]) {
      const warned = await run(...line);
      expect(warned.code, warned.stderr).toBe(0);
      expect(warned.stdout).toMatch(/Warning: The agent agt_\w+ is suspended \(owner_manual: until Monday\)/);
    }
    expect(readFileSync(config, 'utf8')).toContain('agent-broker');
    expect((await run('connect', 'windsurf', '--undo')).code).toBe(0);

    expect((await run('agent', 'revoke', id, '--yes', '--reason', 'gone')).code).toBe(0);
    for (const line of [words, git]) {
      const refused = await run(...line);
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(/The agent agt_\w+ is revoked \(owner_manual: gone\).*Nothing was written/);
    }
    // For a deleted agent, the broker reports only that the key is unknown.
    expect((await run('agent', 'delete', id, '--yes')).code).toBe(0);
    for (const line of [words, git]) {
      const refused = await run(...line);
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(/does not know the agent agt_\w+ by this key.*Nothing was written\. \S/);
    }
    expect(readFileSync(config, 'utf8')).not.toContain('agent-broker');
  });

  test('creates no agent when the configuration cannot be changed, and reports the reason', async () => {
    const config = join(home, '.claude.json');
    writeFileSync(config, '{ "mcpServers": ');
    const before = await agents();
    const broken = await run('connect', 'claude-code', ...READS);
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining(`${config} is not JSON`)]);
    expect([readFileSync(config, 'utf8'), await agents()]).toEqual(['{ "mcpServers": ', before]);
    const desktop = await run('connect', 'claude-desktop', '--project');
    expect([desktop.code, desktop.stderr]).toEqual([2, expect.stringContaining('leave out --project')]);
    const unknown = await run('connect', 'emacs');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('claude-code')]);
    expect(await agents()).toEqual(before);
    const none = await run('connect', 'cursor', '--profile', join(folder, 'none.json'));
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('no profile')]);
  });
});
