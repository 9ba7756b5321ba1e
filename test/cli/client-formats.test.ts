/**
 * Checks what `connect` writes against the format of each client that cannot be installed here: a schema of the entry, made from the client's reference
 * or source, and Continue's own parser. test/client-programs/configuration.test.ts runs the clients that can be installed.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { parse as parseJson } from 'jsonc-parser';
import { expect, onTestFinished, test, vi } from 'vitest';
import { configFile } from '../../bin/clients/client-config.ts';
import type { ClientId } from '../../bin/clients/clients.ts';
import { connectClient } from '../../bin/clients/connect-client.ts';
import { load, withoutLab } from '../clients-lab/installed.ts';
import { makeKeyPair } from '../world/agent.ts';
import { newFolder } from '../world/stores.ts';

const string = { type: 'string' };
const strings = { type: 'object', additionalProperties: string };
/** The fields that all clients have. */
const stdio = { command: { type: 'string', minLength: 1 }, args: { type: 'array', items: string }, env: strings };
/** `more`: further properties; `closed`: no others are allowed; `required`: required besides the command. */
const entryOf = (more: object, { closed = false, required = [] as string[] } = {}): object => ({
  type: 'object',
  required: ['command', ...required],
  properties: { ...stdio, ...more },
  ...(closed && { additionalProperties: false }),
});

/** Runs `connect` and `connect --undo` on a machine whose file contains `mine`. Returns the file's text while the entry was in it. */
async function written(client: ClientId, mine: string): Promise<{ text: string; profile: string }> {
  const home = newFolder();
  vi.stubEnv('HOME', home);
  for (const name of ['XDG_CONFIG_HOME', 'APPDATA', 'CONTINUE_GLOBAL_DIR', 'CLINE_DIR', 'CLINE_DATA_DIR'])
    vi.stubEnv(name, undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const file = configFile(client, { platform: process.platform, environment: {}, home, cwd: home }, 'user')!;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, mine);
  const profile = join(home, 'profile.json');
  const private_key = makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' });
  writeFileSync(profile, JSON.stringify({ url: 'http://127.0.0.1:1', agent_id: 'a', owner_id: 'o', private_key }), {
    mode: 0o600,
  });
  expect(await connectClient(client, { profile })).toMatchObject({ config: file, change: 'added' });
  const text = readFileSync(file, 'utf8');
  expect(await connectClient(client, { undo: true })).toMatchObject({ change: 'removed' });
  expect(readFileSync(file, 'utf8')).toBe(mine);
  return { text, profile };
}

const OTHER = '{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n';

test.each<[ClientId, string, object, mine: string, isStrict: boolean]>([
  [
    'vscode',
    'microsoft/vscode, src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts (0b37532), mcpStdioServerSchema',
    entryOf(
      { type: { const: 'stdio' }, cwd: string, envFile: string, dev: { type: 'object' } },
      // See code.visualstudio.com/docs/copilot/reference/mcp-configuration.
      { closed: true, required: ['type'] },
    ),
    '{\n  // mine\n  "inputs": [],\n  "servers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    false,
  ],
  [
    'claude-desktop',
    'microsoft/vscode, which reads it: …/mcp/common/discovery/nativeMcpDiscoveryAdapters.ts (0312f2d); modelcontextprotocol.io, Connect to local MCP servers',
    entryOf({}, { closed: true }),
    OTHER,
    true,
  ],
  [
    'cursor',
    'cursor.com/docs/context/mcp, STDIO server configuration; its examples have no type',
    entryOf({ type: { const: 'stdio' }, envFile: string }, { closed: true }),
    OTHER,
    true,
  ],
  [
    'zed',
    // An untagged enum: the properties decide which kind of server it is.
    'zed-industries/zed, crates/settings_content/src/project.rs (68db213), ContextServerSettingsContent::Stdio',
    entryOf(
      { enabled: { type: 'boolean' }, remote: { type: 'boolean' }, timeout: { type: 'number' } },
      { closed: true },
    ),
    '// mine\n{\n  "theme": "x",\n  "context_servers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    false,
  ],
  [
    'cline',
    'cline/cline, sdk/packages/core/src/extensions/mcp/config-loader.ts (038f2b6), legacyStdioRegistrationSchema',
    entryOf({ type: { const: 'stdio' }, disabled: { type: 'boolean' } }),
    OTHER,
    true,
  ],
  [
    'windsurf',
    'docs.windsurf.com/windsurf/cascade/mcp (November 2026), mcp_config.json',
    entryOf({ disabled: { type: 'boolean' } }),
    OTHER,
    true,
  ],
  [
    'antigravity',
    'antigravity.google/docs/mcp (November 2026), mcp_config.json',
    entryOf({ disabled: { type: 'boolean' } }),
    OTHER,
    true,
  ],
  [
    'devin',
    'docs.devin.ai/cli/extensibility/mcp/configuration (November 2026), mcp_config.json, whose entries have no other members',
    entryOf({ disabled: { type: 'boolean' } }, { closed: true }),
    OTHER,
    true,
  ],
  [
    'kiro',
    'kiro.dev/docs/mcp/configuration (November 2026), mcp.json',
    entryOf({ disabled: { type: 'boolean' }, autoApprove: { type: 'array' }, disabledTools: { type: 'array' } }),
    OTHER,
    true,
  ],
])('the entry of %s is valid by %s', async (client, _source, schema, mine, isStrict) => {
  const { text, profile } = await written(client, mine);
  // A file that the client reads as plain JSON gets no comments and no trailing commas.
  const whole = (isStrict ? JSON.parse(text) : parseJson(text)) as Record<string, Record<string, unknown>>;
  const [entry] = Object.values(whole).flatMap((one) => one['agent-broker'] ?? []);
  const validate = new Ajv().compile(schema);
  expect(validate(entry), JSON.stringify(validate.errors)).toBe(true);
  expect(entry).toMatchObject({ command: process.execPath, env: { AGENT_BROKER_PROFILE: profile } });
});

test.skipIf(withoutLab)(
  `continue: its own parser reads the entry${withoutLab ? ` (skipped: ${withoutLab})` : ''}`,
  async () => {
    const mine = 'name: Mine\nversion: 1.0.0\nschema: v1\n# mine\nmcpServers:\n  - name: other\n    command: x\n';
    const { text, profile } = await written('continue', mine);
    const { parseConfigYaml } = load('@continuedev/config-yaml');
    expect(parseConfigYaml(text).mcpServers).toMatchObject([
      { name: 'other' },
      { name: 'agent-broker', command: process.execPath, env: { AGENT_BROKER_PROFILE: profile } },
    ]);
  },
);
