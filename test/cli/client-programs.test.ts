/**
 * What `connect` writes, read by the clients themselves or by the packages that they read it with. They are no dependencies: a folder
 * into which they were installed is named by CLIENT_PROGRAMS, as
 * `npm i --prefix DIR @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 @continuedev/config-yaml@1.42.0`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { parse as parseJson } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { type ClientId, configFile, type Machine } from '../../bin/client-config.ts';
import { makeKeyPair } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';

const programs = process.env.CLIENT_PROGRAMS!;
const binOf = (name: string) => join(programs, 'node_modules', '.bin', name);
const skipped = (path: string) => (existsSync(path) ? undefined : 'not installed; see CLIENT_PROGRAMS');

/** A home folder with what its user has there, and our entry; of an agent whose profile is there. */
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
  const text = readFileSync(file, 'utf8');
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
  return { home, file, profile, text, ask, undo };
}

// Some take half a minute to start on a machine that is busy.
describe('what connect writes is read by', { timeout: 120_000 }, () => {
  const codex = skipped(binOf('codex'));
  test.skipIf(codex)(`Codex 0.169.0, "codex mcp get"${codex ? ` (skipped: ${codex})` : ''}`, async () => {
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
  test.skipIf(gemini)(`Gemini CLI 0.61.0, "gemini mcp list"${gemini ? ` (skipped: ${gemini})` : ''}`, async () => {
    const { ask, undo } = await connected('gemini', '{\n  // mine\n  "theme": "CANARY"\n}\n');
    const { stdout, stderr } = ask(process.execPath, [binOf('gemini'), 'mcp', 'list']);
    expect(stdout + stderr).toMatch(/agent-broker: \S+ \S+ mcp \(stdio\)/);
    await undo();
  });

  const opencode = skipped(binOf('opencode'));
  test.skipIf(opencode)(
    `opencode 1.18.33, "opencode debug config"${opencode ? ` (skipped: ${opencode})` : ''}`,
    async () => {
      const { ask, profile, undo } = await connected('opencode', '{\n  // mine\n  "username": "CANARY"\n}\n');
      const { stdout, stderr, status } = ask(binOf('opencode'), ['debug', 'config']);
      expect(status, stderr).toBe(0);
      expect(JSON.parse(stdout).mcp['agent-broker']).toMatchObject({
        type: 'local',
        enabled: true,
        environment: { AGENT_BROKER_PROFILE: profile },
      });
      await undo();
    },
  );

  const yaml = skipped(join(programs, 'node_modules', '@continuedev', 'config-yaml'));
  test.skipIf(yaml)(`Continue, @continuedev/config-yaml 1.42.0${yaml ? ` (skipped: ${yaml})` : ''}`, async () => {
    const mine = 'name: Mine\nversion: 1.0.0\nschema: v1\n# mine\nmcpServers:\n  - name: other\n    command: CANARY\n';
    const { text, profile, undo } = await connected('continue', mine);
    const { parseConfigYaml } = createRequire(join(programs!, 'x.js'))('@continuedev/config-yaml');
    expect(parseConfigYaml(text).mcpServers).toMatchObject([
      { name: 'other' },
      { name: 'agent-broker', command: process.execPath, env: { AGENT_BROKER_PROFILE: profile } },
    ]);
    await undo();
  });

  // Programs with windows: held to what they publish. The parts that say what an MCP server is, as JSON Schema.
  const strings = { type: 'object', additionalProperties: { type: 'string' } };
  const stdio = {
    type: 'object',
    required: ['command'],
    properties: {
      command: { type: 'string', minLength: 1 },
      args: { type: 'array', items: { type: 'string' } },
      env: strings,
    },
  };
  test.each<[ClientId, string, object, string]>([
    [
      'zed',
      // Untagged: which members there are says what kind of server it is.
      'zed-industries/zed, crates/settings_content/src/project.rs (68db213), ContextServerSettingsContent::Stdio',
      {
        ...stdio,
        additionalProperties: false,
        properties: {
          ...stdio.properties,
          enabled: { type: 'boolean' },
          remote: { type: 'boolean' },
          timeout: { type: 'number' },
        },
      },
      '// mine\n{\n  "theme": "CANARY",\n  "context_servers": {},\n}\n',
    ],
    [
      'cline',
      'cline/cline, sdk/packages/core/src/extensions/mcp/config-loader.ts (038f2b6), legacyStdioRegistrationSchema',
      { ...stdio, properties: { ...stdio.properties, type: { const: 'stdio' }, disabled: { type: 'boolean' } } },
      '{\n  "mcpServers": {\n    "other": {\n      "command": "CANARY"\n    }\n  }\n}\n',
    ],
    [
      'windsurf',
      'docs.windsurf.com/windsurf/cascade/mcp (November 2026), mcp_config.json',
      { ...stdio, properties: { ...stdio.properties, disabled: { type: 'boolean' } } },
      '{\n  "mcpServers": {}\n}\n',
    ],
  ])('%s, as %s says', async (client, _source, schema, mine) => {
    const { text, profile, undo } = await connected(client, mine);
    const entry = Object.values<Record<string, unknown>>(parseJson(text)).find(
      (one) => typeof one === 'object' && 'agent-broker' in one,
    )!['agent-broker'];
    const validate = new Ajv().compile(schema);
    expect(validate(entry), JSON.stringify(validate.errors)).toBe(true);
    expect(entry).toMatchObject({ command: process.execPath, env: { AGENT_BROKER_PROFILE: profile } });
    // Cline reads strict JSON.
    if (client !== 'zed') JSON.parse(text);
    if (client === 'zed' || client === 'cline') await undo();
  });
});
