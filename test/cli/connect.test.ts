/** Where clients keep their configuration, how one entry is changed, and how messages name this program. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join, win32 } from 'node:path';
import fc from 'fast-check';
import { parse } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { configFile, serverEntry } from '../../bin/clients/client-config.ts';
import { CLIENTS, type ClientId } from '../../bin/clients/clients.ts';
import { changedLines, editEntry } from '../../bin/clients/edit-config.ts';
import { manualInstructions } from '../../bin/clients/manual-config.ts';
import { firstCall, programOn } from '../../bin/commands/serve.ts';
import { CommandFailed } from '../../bin/failure.ts';
import type { Machine } from '../../bin/machine.ts';
import { programName } from '../../bin/program-name.ts';
import { lastingLauncher, plainEntry } from '../../bin/server-entry.ts';
import { newFolder } from '../world/stores.ts';

const MAC: Machine = { platform: 'darwin', environment: {}, home: '/Users/ann', cwd: '/Users/ann/shop' };
const LINUX: Machine = { platform: 'linux', environment: {}, home: '/home/ann', cwd: '/home/ann/shop' };
const WINDOWS: Machine = {
  platform: 'win32',
  environment: { APPDATA: 'D:\\Roaming' },
  home: 'C:\\Users\\Ann Lee',
  cwd: 'C:\\shop',
};

test.each<[ClientId, Machine, 'user' | 'project', string | undefined]>([
  ['claude-code', MAC, 'user', '/Users/ann/.claude.json'],
  ['claude-code', WINDOWS, 'user', 'C:\\Users\\Ann Lee\\.claude.json'],
  ['claude-code', LINUX, 'project', '/home/ann/shop/.mcp.json'],
  ['claude-code', { ...LINUX, environment: { CLAUDE_CONFIG_DIR: '/etc/claude' } }, 'user', '/etc/claude/.claude.json'],
  ['claude-desktop', MAC, 'user', '/Users/ann/Library/Application Support/Claude/claude_desktop_config.json'],
  ['claude-desktop', WINDOWS, 'user', 'D:\\Roaming\\Claude\\claude_desktop_config.json'],
  ['claude-desktop', LINUX, 'user', '/home/ann/.config/Claude/claude_desktop_config.json'],
  ['claude-desktop', LINUX, 'project', undefined],
  ['cursor', LINUX, 'user', '/home/ann/.cursor/mcp.json'],
  ['cursor', WINDOWS, 'project', 'C:\\shop\\.cursor\\mcp.json'],
  ['vscode', MAC, 'user', '/Users/ann/Library/Application Support/Code/User/mcp.json'],
  ['vscode', { ...WINDOWS, environment: {} }, 'user', 'C:\\Users\\Ann Lee\\AppData\\Roaming\\Code\\User\\mcp.json'],
  ['vscode', { ...LINUX, environment: { XDG_CONFIG_HOME: '/x' } }, 'user', '/x/Code/User/mcp.json'],
  ['vscode', WINDOWS, 'project', 'C:\\shop\\.vscode\\mcp.json'],
  ['gemini', LINUX, 'user', '/home/ann/.gemini/settings.json'],
  ['gemini', WINDOWS, 'project', 'C:\\shop\\.gemini\\settings.json'],
  ['copilot', LINUX, 'user', '/home/ann/.copilot/mcp-config.json'],
  ['copilot', { ...LINUX, environment: { COPILOT_HOME: '/x' } }, 'user', '/x/mcp-config.json'],
  ['copilot', WINDOWS, 'project', 'C:\\shop\\.github\\mcp.json'],
  ['qwen', LINUX, 'user', '/home/ann/.qwen/settings.json'],
  ['qwen', LINUX, 'project', '/home/ann/shop/.qwen/settings.json'],
  ['opencode', MAC, 'user', '/Users/ann/.config/opencode/opencode.json'],
  ['opencode', { ...LINUX, environment: { XDG_CONFIG_HOME: '/x' } }, 'user', '/x/opencode/opencode.json'],
  ['opencode', LINUX, 'project', '/home/ann/shop/opencode.json'],
  ['codex', LINUX, 'user', '/home/ann/.codex/config.toml'],
  ['codex', { ...LINUX, environment: { CODEX_HOME: '/x' } }, 'user', '/x/config.toml'],
  ['codex', WINDOWS, 'project', 'C:\\shop\\.codex\\config.toml'],
  ['zed', LINUX, 'user', '/home/ann/.config/zed/settings.json'],
  ['zed', { ...LINUX, environment: { XDG_CONFIG_HOME: '/x' } }, 'user', '/x/zed/settings.json'],
  ['zed', { ...MAC, environment: { XDG_CONFIG_HOME: '/x' } }, 'user', '/Users/ann/.config/zed/settings.json'],
  ['zed', WINDOWS, 'user', 'D:\\Roaming\\Zed\\settings.json'],
  ['zed', MAC, 'project', '/Users/ann/shop/.zed/settings.json'],
  ['windsurf', MAC, 'user', '/Users/ann/.codeium/windsurf/mcp_config.json'],
  ['windsurf', MAC, 'project', undefined],
  ['antigravity', LINUX, 'user', '/home/ann/.gemini/config/mcp_config.json'],
  ['antigravity', WINDOWS, 'project', 'C:\\shop\\.agents\\mcp_config.json'],
  ['devin', MAC, 'user', '/Users/ann/.config/devin/mcp_config.json'],
  ['devin', WINDOWS, 'user', 'D:\\Roaming\\devin\\mcp_config.json'],
  ['devin', LINUX, 'project', '/home/ann/shop/.devin/mcp_config.json'],
  ['kiro', WINDOWS, 'user', 'C:\\Users\\Ann Lee\\.kiro\\settings\\mcp.json'],
  ['kiro', LINUX, 'project', '/home/ann/shop/.kiro/settings/mcp.json'],
  ['cline', LINUX, 'user', '/home/ann/.cline/data/settings/cline_mcp_settings.json'],
  ['cline', { ...LINUX, environment: { CLINE_DIR: '/c' } }, 'user', '/c/data/settings/cline_mcp_settings.json'],
  ['cline', { ...LINUX, environment: { CLINE_DATA_DIR: '/d' } }, 'user', '/d/settings/cline_mcp_settings.json'],
  ['cline', { ...LINUX, environment: { CLINE_MCP_SETTINGS_PATH: '/m.json' } }, 'user', '/m.json'],
  ['cline', LINUX, 'project', undefined],
  ['continue', WINDOWS, 'user', 'C:\\Users\\Ann Lee\\.continue\\config.yaml'],
  ['continue', { ...LINUX, environment: { CONTINUE_GLOBAL_DIR: '/x' } }, 'user', '/x/config.yaml'],
  ['continue', LINUX, 'project', undefined],
])('the file of %s on %j, for the %s: %s', (client, machine, place, path) => {
  expect(configFile(client, machine, place)).toBe(path);
});

test('Claude Desktop installed on Windows as a package has its file in the package’s folder', () => {
  const local = newFolder();
  const machine: Machine = { ...WINDOWS, environment: { APPDATA: 'D:\\Roaming', LOCALAPPDATA: local } };
  const inPackage = (name: string) => ['Packages', name, 'LocalCache', 'Roaming', 'Claude'];
  const found = () => configFile('claude-desktop', machine, 'user');
  const said = (name: string) => win32.join(local, ...inPackage(name), 'claude_desktop_config.json');
  mkdirSync(join(local, 'Packages', 'Microsoft.Edge_8wekyb3d8bbwe'), { recursive: true });
  expect(found()).toBe('D:\\Roaming\\Claude\\claude_desktop_config.json');
  mkdirSync(join(local, 'Packages', 'Claude_pzs8sxrjxfjjc'));
  expect(found()).toBe(said('Claude_pzs8sxrjxfjjc'));
  mkdirSync(join(local, ...inPackage('Claude_z0')), { recursive: true });
  expect(found()).toBe(said('Claude_pzs8sxrjxfjjc'));
  writeFileSync(join(local, ...inPackage('Claude_z0'), 'claude_desktop_config.json'), '{}');
  expect(found()).toBe(said('Claude_z0'));
});

describe('the entry', () => {
  const profile = '/home/ann/.agent-broker/profiles/cursor.json';

  const launcher = { node: '/usr/bin/node', script: '/opt/agent-broker/bin/agent-broker.js' };
  const words = [launcher.script, 'mcp'];
  const env = { AGENT_BROKER_PROFILE: profile };

  const plain = { command: launcher.node, args: words, env };
  const entries: Record<ClientId, object> = {
    'claude-code': { type: 'stdio', ...plain },
    'claude-desktop': plain,
    cursor: plain,
    vscode: { type: 'stdio', ...plain },
    codex: plain,
    gemini: plain,
    copilot: { type: 'local', ...plain, tools: ['*'] },
    qwen: plain,
    opencode: { type: 'local', enabled: true, command: [launcher.node, ...words], environment: env },
    zed: plain,
    windsurf: plain,
    antigravity: plain,
    devin: plain,
    kiro: plain,
    cline: plain,
    continue: { name: 'agent-broker', ...plain },
  };
  test.each(CLIENTS)('for %s names the profile’s path, and contains no secret', (client) => {
    expect(serverEntry(client, { profile, launcher, platform: 'linux' })).toEqual(entries[client]);
  });

  test('runs npx when the package is only in npx’s cache, through cmd on Windows', () => {
    const cached = '/home/ann/.npm/_npx/1a2b/node_modules/agent-broker/bin/agent-broker.js';
    const none = lastingLauncher('/usr/bin/node', cached);
    expect(none).toBeUndefined();
    expect(plainEntry({ profile, launcher: none, platform: 'linux' }).command).toBe('npx');
    const { args } = plainEntry({ profile, launcher: none, platform: 'win32' });
    expect(args).toEqual(['/c', 'npx', '-y', 'agent-broker', 'mcp']);
  });

  test('the text for an unknown client says what to write', () => {
    const told = manualInstructions(plainEntry({ profile: 'FILE', launcher, platform: 'linux' }));
    expect(told).toContain('npx agent-broker agent create NAME');
    expect(told).toContain('"agent-broker": {\n      "command": "/usr/bin/node"');
  });
});

test('messages say npx, unless agent-broker on the PATH is this installation', () => {
  const folder = newFolder();
  const [script, other] = ['own.js', 'other.js'].map((name) => join(folder, name)) as [string, string];
  for (const file of [script, other]) writeFileSync(file, '');
  const bin = (name: string, target: string) => {
    mkdirSync(join(folder, name), { recursive: true });
    symlinkSync(target, join(folder, name, 'agent-broker'));
    return join(folder, name);
  };
  const global = bin('global', script);
  const another = bin('another', other);
  // npx puts this link on the PATH only while its command runs.
  const npx = bin(join('node_modules', '.bin'), script);
  const named = (...folders: string[]) => programName({ path: folders.join(delimiter), script, platform: 'linux' });
  expect([named(), named('', another), named(npx), named(join(folder, 'none'))]).toEqual(
    Array(4).fill('npx agent-broker'),
  );
  expect([named(global), named(npx, another, global)]).toEqual(['agent-broker', 'agent-broker']);
  expect(programName({ path: undefined, script, platform: 'linux' })).toBe('npx agent-broker');
  writeFileSync(join(another, 'agent-broker.cmd'), '');
  expect(programName({ path: another, script, platform: 'win32' })).toBe('agent-broker');
});

describe('changing a configuration', () => {
  const ENTRY = { command: 'node', args: ['x'], env: { AGENT_BROKER_PROFILE: '/p' } };
  const PLACE = ['servers', 'agent-broker'] as const;

  test('keeps comments, order, indentation, line ends and other servers; undo restores the text', () => {
    for (const [indent, eol, bom] of [
      ['  ', '\n', ''],
      ['\t', '\r\n', '\uFEFF'],
      ['    ', '\n', ''],
    ] as const) {
      const text =
        bom +
        [
          '{',
          '  // mine',
          '  "inputs": [], /* and this */',
          '  "servers": {',
          '    "other": { "command": "x" } // keep',
          '  }',
          '}',
          '',
        ]
          .join(eol)
          .replaceAll(/^( +)/gm, (spaces) => indent.repeat(spaces.length / 2));
      const added = editEntry(text, PLACE, ENTRY, 'f');
      expect(added.change).toBe('added');
      for (const kept of ['// mine', '/* and this */', '// keep', `${indent}"inputs"`])
        expect(added.text).toContain(kept);
      expect(parse(added.text.replace('\uFEFF', '')).servers).toEqual({
        other: { command: 'x' },
        'agent-broker': ENTRY,
      });
      expect(added.text).toContain(`${eol}${indent.repeat(2)}"agent-broker": {${eol}`);
      if (eol === '\r\n') expect(added.text.replaceAll('\r\n', '')).not.toContain('\n');
      const undone = editEntry(added.text, PLACE, undefined, 'f');
      expect(undone.change).toBe('removed');
      expect(undone.before).toEqual(ENTRY);
      expect(undone.text).toBe(text);
    }
  });

  test('adding and removing the entry preserve any other content of the file', () => {
    const others = fc.dictionary(
      fc.string().filter((name) => name !== 'agent-broker' && name !== '__proto__'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(
        others,
        fc.option(others, { nil: undefined }),
        fc.constantFrom(undefined, 2, '\t'),
        (root, servers, indent) => {
          delete root.servers;
          const file = servers === undefined ? root : { ...root, servers };
          const text = JSON.stringify(file, null, indent);
          const before = JSON.parse(text);
          const added = editEntry(text, PLACE, ENTRY, 'f');
          expect(JSON.parse(added.text)).toEqual({ ...before, servers: { ...before.servers, 'agent-broker': ENTRY } });
          expect(editEntry(added.text, PLACE, ENTRY, 'f')).toMatchObject({ change: 'none', text: added.text });
          const undone = editEntry(added.text, PLACE, undefined, 'f');
          expect(JSON.parse(undone.text)).toEqual({ ...before, servers: before.servers ?? {} });
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each([
    ['{ "servers": { "a": 1 } }', '{ "servers": { "a": 1 } }'],
    ['{\n  "servers": {\n    "a": 1, // keep, too\n  },\n}', '{\n  "servers": {\n    "a": 1 // keep, too\n  },\n}'],
    ['{\n  "servers": {\n    // nothing, yet\n  }\n}', undefined],
    ['{\n  "servers": {}\n}', undefined],
    [
      '{\n  "servers": {\n    "agent-broker": 1, // gone\n    "a": 2\n  }\n}',
      '{\n  "servers": { // gone\n    "a": 2\n  }\n}',
    ],
  ])('adding and then removing in %j', (text, expected) => {
    const added = editEntry(text, PLACE, ENTRY, 'f');
    expect(parse(added.text).servers['agent-broker']).toEqual(ENTRY);
    const undone = editEntry(added.text, PLACE, undefined, 'f').text;
    const plain = (words: string) => words.replaceAll(/\s+/g, ' ').replaceAll(/ (?=[}])/g, '');
    expect(plain(undone)).toBe(plain(expected ?? text));
  });

  const OURS = '"agent-broker": { "command": "x" }';
  test.each([
    [`{"servers": { // servers\n  ${OURS} }\n}`, '{"servers": { // servers\n  }\n}'],
    [`{"servers": { "b": {}, // keep\n  ${OURS} }}`, '{"servers": { "b": {} // keep\n  }}'],
    [`{"servers": {\n  // ours\n  ${OURS}, "c": {}\n}}`, '{"servers": {\n  // ours\n  "c": {}\n}}'],
    [`{"servers": { // open {\n  ${OURS}\n}}`, '{"servers": { // open {\n}}'],
    [`{"servers": { // open {\r\n  ${OURS}, // rest\r\n}}`, '{"servers": { // open {\r\n  // rest\r\n}}'],
    [`{"servers": { /* a */ ${OURS}, "c": {} }}`, '{"servers": { /* a */ "c": {} }}'],
    [`{"servers": {"c": "// {", ${OURS}, }}`, '{"servers": {"c": "// {", }}'],
    [`{"servers": {\n  ${OURS}\n}}`, '{"servers": {}}'],
  ])('removing the entry from %j keeps the rest, with comments', (text, expected) => {
    const { [PLACE[1]]: _, ...others } = parse(text).servers;
    const undone = editEntry(text, PLACE, undefined, 'f').text;
    expect(undone).toBe(expected);
    expect(parse(undone)).toEqual({ servers: others });
  });

  test('comments between the members never change the members', () => {
    const gap = fc.array(fc.constantFrom(' ', '\n', '\r\n', '// {,"\n', '/* } */', '//\r\n'), { maxLength: 3 });
    const gaps = fc.array(
      gap.map((parts) => parts.join('')),
      { minLength: 12, maxLength: 12 },
    );
    const names = fc.uniqueArray(fc.constantFrom('a', 'agent-broker', 'c'), { maxLength: 3 });
    fc.assert(
      fc.property(names, gaps, fc.boolean(), (given, between, trailing) => {
        const space = between.values();
        const some = () => space.next().value ?? '';
        const members = given.map((name) => `${some()}"${name}":${some()}{"x": "// {"}${some()}`);
        const comma = trailing && given.length > 0 ? `,${some()}` : '';
        const text = `{"servers":{${members.join(',')}${comma}${given.length === 0 ? some() : ''}}}`;
        const before = parse(text, [], { allowTrailingComma: true });
        const added = editEntry(text, PLACE, ENTRY, 'f');
        expect(parse(added.text, [], { allowTrailingComma: true }).servers).toEqual({
          ...before.servers,
          'agent-broker': ENTRY,
        });
        for (const file of [text, added.text]) {
          const undone = parse(editEntry(file, PLACE, undefined, 'f').text, [], { allowTrailingComma: true });
          const { 'agent-broker': _, ...others } = before.servers;
          expect(undone.servers).toEqual(others);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('adding to an empty file creates it, and removing from an empty file changes nothing', () => {
    expect(JSON.parse(editEntry('', PLACE, ENTRY, 'f').text)).toEqual({ servers: { 'agent-broker': ENTRY } });
    expect(editEntry('', PLACE, undefined, 'f')).toMatchObject({ change: 'none', text: '' });
  });

  test('lists the removed and added lines of the entry', () => {
    const one = { command: 'a', args: ['b'] };
    expect(changedLines('x', one, { ...one, args: ['c', 'd'] })).toEqual(['-     "b"', '+     "c",', '+     "d"']);
    expect(changedLines('x', undefined, { a: 1 })).toEqual(['+ "x": {', '+   "a": 1', '+ }']);
    expect(changedLines('x', 1, undefined)).toEqual(['- "x": 1']);
    expect(changedLines('x', one, one)).toEqual([]);
  });

  test.each([
    ['{ "servers": [] }', /"servers" is no object/],
    ['[]', /no JSON object/],
    ['{ "servers": { "agent-broker": {} }, "servers": {} }', /"servers" is duplicated/],
    ['{ "servers": {}, "s\\u0065rvers": { "agent-broker": {} } }', /"servers" is duplicated/],
    ['{ "servers": { "agent-broker": 1, "agent-broker": 2 } }', /"agent-broker" is duplicated/],
    ['{ "servers": { }', /line 1/],
    ['{\n  "a": 1,\n  b: 2\n}', /line 3/],
  ])('refuses %s with a reason', (text, why) => {
    expect(() => editEntry(text, PLACE, ENTRY, '/x/mcp.json')).toThrow(CommandFailed);
    expect(() => editEntry(text, PLACE, ENTRY, '/x/mcp.json')).toThrow(why);
    expect(() => editEntry(text, PLACE, undefined, '/x/mcp.json')).toThrow(why);
  });
});

test('the first call in the greeting of a start uses the syntax of the machine’s shell', () => {
  const body = '{"platform":"sandbox","endpoint":"/issues","method":"GET","scope":"sandbox:issues.read"}';
  const posix = firstCall('http://localhost:8787', 'linux', programOn('.agent-broker', 'linux'));
  expect(posix[0]).toBe('curl -s http://localhost:8787/v1/actions \\');
  expect(posix.at(-1)).toBe(`  -d '${body}'`);
  const windows = firstCall('http://localhost:8787', 'win32', programOn('.agent-broker', 'win32'));
  expect(windows[0]).toBe(
    'Invoke-RestMethod http://localhost:8787/v1/actions -Method Post -ContentType application/json `',
  );
  expect(windows.at(-1)).toBe(`  -Body '${body}'`);
  expect(`${[...posix, ...windows]}`).not.toContain('AGENT_BROKER_DATA');
});

test('commands in the greeting of a start name the broker’s data folder when it is not the default', () => {
  expect(firstCall('', 'linux', programOn('a b', 'linux')).join()).toMatch(
    /\$\(AGENT_BROKER_DATA='a b' [\w -]+ token\)/,
  );
  expect(programOn('sandbox', 'linux')).toMatch(/^AGENT_BROKER_DATA=sandbox /);
  expect(programOn("o'brien", 'win32')).toMatch(/^\$env:AGENT_BROKER_DATA='o''brien'; /);
});
