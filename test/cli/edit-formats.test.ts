/** Configurations in TOML and YAML: our entry is added and removed, and any other content of the file stays as it is. */
import fc from 'fast-check';
import { parse as parseToml, stringify as toToml } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml, stringify as toYaml } from 'yaml';
import { editToml } from '../../bin/clients/edit-toml.ts';
import { editYaml } from '../../bin/clients/edit-yaml.ts';
import { CommandFailed } from '../../bin/failure.ts';

const ENTRY = { command: '/usr/bin/node', args: ['/b "x"', 'mcp'], env: { AGENT_BROKER_PROFILE: 'C:\\p\\é' } };
const ITEM = { name: 'agent-broker', ...ENTRY };
const EMPTY = { name: 'Local Config', version: '1.0.0', schema: 'v1', models: [] };
const toml = (text: string, entry: typeof ENTRY | undefined) =>
  editToml(text, ['mcp_servers', 'agent-broker'], entry, 'config.toml');
const yaml = (text: string, entry: typeof ITEM | undefined) =>
  editYaml(text, ['mcpServers', 'agent-broker'], entry, { path: 'config.yaml', empty: EMPTY });

/** Any other value that a configuration may have under a key. */
const anyValue = (key: fc.Arbitrary<string>) =>
  fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string()), fc.dictionary(key, fc.string()));

describe('TOML', () => {
  const MINE = [
    '# mine',
    'model = "x" # keep',
    'text = """',
    '[mcp_servers.agent-brokers]',
    '"""',
    '',
    '[mcp_servers.other]',
    'command = "npx"',
    'env = { API_KEY = "CANARY" }',
    '',
    '[[things]]',
    'at = 1979-05-27T07:32:00Z',
    'big = 9007199254740993',
  ];

  test.each(['\n', '\r\n'])('keeps the rest unchanged, with line ends and BOM; undo restores the text (%j)', (eol) => {
    for (const bom of ['', '\uFEFF']) {
      const text = bom + MINE.slice(0, -1).join(eol) + eol;
      const added = toml(text, ENTRY);
      expect([added.change, added.text.startsWith(text)]).toEqual(['added', true]);
      if (eol === '\r\n') expect(added.text.replaceAll('\r\n', '')).not.toContain('\n');
      expect(parseToml(added.text.slice(bom.length))).toMatchObject({ mcp_servers: { 'agent-broker': ENTRY } });
      expect(toml(added.text, ENTRY)).toMatchObject({ change: 'none', text: added.text });
      const other = { ...ENTRY, command: 'y' };
      const changed = toml(added.text, other);
      expect([changed.change, changed.before]).toEqual(['changed', ENTRY]);
      expect(changed.text).toBe(toml(text, other).text);
      const undone = toml(changed.text, undefined);
      expect([undone.change, undone.text]).toEqual(['removed', text]);
    }
  });

  test('removing an entry in the middle of the file keeps what follows it, with its comment', () => {
    const text =
      'a = 1\n\n[mcp_servers."agent-broker"]\ncommand = "x"\n\n[mcp_servers.agent-broker.env]\nA = "b"\n\n# next\n[z]\nb = 2\n';
    expect(toml(text, undefined).text).toBe('a = 1\n\n# next\n[z]\nb = 2\n');
    expect(parseToml(toml(text, ENTRY).text)).toEqual({ a: 1, z: { b: 2 }, mcp_servers: { 'agent-broker': ENTRY } });
  });

  test.each([
    ['', 'added'],
    ['\n', 'added'],
  ])('an empty file (%j) contains only our table afterwards', (text, change) => {
    const added = toml(text, ENTRY);
    expect([added.change, parseToml(added.text)]).toEqual([change, { mcp_servers: { 'agent-broker': ENTRY } }]);
    expect(toml(added.text, undefined).text.trim()).toBe('');
  });

  test.each([
    ['broken = "CANARY', 'is not TOML'],
    ['mcp_servers = 1', '"mcp_servers" is no table'],
    ['mcp_servers = { other = { command = "CANARY" } }', 'without touching something else'],
    ['[mcp_servers]\nagent-broker = { command = "CANARY" }', 'without touching something else'],
    ['t = """\n[mcp_servers.agent-broker]\nCANARY\n"""\n[mcp_servers.agent-broker]\ncommand="x"', 'without touching'],
  ])('%j is refused, and the error quotes nothing of the file', (text, says) => {
    for (const entry of [ENTRY, undefined]) {
      if (entry === undefined && !text.includes('agent-broker') && text.startsWith('mcp_servers = {')) continue;
      const refused = (() => {
        try {
          return toml(text, entry);
        } catch (error) {
          return error;
        }
      })();
      expect(refused).toBeInstanceOf(CommandFailed);
      expect((refused as Error).message).toContain(says);
      expect((refused as Error).message).not.toContain('CANARY');
    }
  });

  test('adding and removing the entry preserve any other content of the file', () => {
    const key = fc.string({ minLength: 1 }).filter((one) => one !== 'mcp_servers' && one !== '__proto__');
    const value = anyValue(key);
    fc.assert(
      fc.property(fc.dictionary(key, value), fc.dictionary(key, fc.dictionary(key, fc.string())), (root, servers) => {
        const text = toToml({ ...root, ...(Object.keys(servers).length > 0 && { mcp_servers: servers }) });
        const before = parseToml(text);
        const added = toml(text, ENTRY);
        expect(parseToml(added.text)).toEqual({
          ...before,
          mcp_servers: { ...(before.mcp_servers as object), 'agent-broker': ENTRY },
        });
        expect(parseToml(toml(added.text, undefined).text)).toEqual(before);
      }),
    );
  });
});

describe('YAML', () => {
  test.each([
    [
      'a list with others',
      'name: x\n# mine\nmcpServers:\n  - name: other # keep\n    command: npx\n    env: { API_KEY: CANARY }\nmodels: []\n',
    ],
    ['a list that is not indented', 'mcpServers:\n- name: other\n  command: npx\n# end\n'],
    ['none', 'name: x\nrules:\n  - a\n'],
    ['CRLF', 'name: x\r\nmcpServers:\r\n  - name: other\r\n    command: npx\r\nmodels: []\r\n'],
    ['a BOM', '\uFEFFname: x\nmodels: []\n'],
  ])('%s: keeps the rest unchanged; undo restores the text', (_what, text) => {
    const added = yaml(text, ITEM);
    expect(added.change).toBe('added');
    if (text.includes('\r\n')) expect(added.text.replaceAll('\r\n', '')).not.toContain('\n');
    const read = parseYaml(added.text.replace('\uFEFF', ''));
    expect(read.mcpServers.at(-1)).toEqual(ITEM);
    expect({ ...read, mcpServers: read.mcpServers.slice(0, -1) }).toEqual({
      mcpServers: [],
      ...parseYaml(text.replace('\uFEFF', '')),
    });
    for (const line of text.split(/\r?\n/)) expect(added.text).toContain(line);
    expect(yaml(added.text, ITEM)).toMatchObject({ change: 'none', text: added.text });
    const changed = yaml(added.text, { ...ITEM, command: 'y' });
    expect([changed.change, changed.before]).toEqual(['changed', ITEM]);
    expect(yaml(changed.text, undefined).text).toBe(text);
  });

  test('comments above our entry stay when it is removed as the only entry', () => {
    const text =
      'name: L # of mine\nmcpServers: # a#b\n  # first\n\n  - name: agent-broker\n    command: x\nmodels: []\n';
    expect(yaml(text, undefined).text).toBe('name: L # of mine\n# a#b\n# first\nmodels: []\n');
    const changed = yaml(text, ITEM).text;
    expect(changed.match(/#.*/g)).toEqual(['# of mine', '# a#b', '# first']);
    expect(parseYaml(changed)).toEqual({ name: 'L', models: [], mcpServers: [ITEM] });
    expect(yaml(text.replaceAll('\n', '\r\n'), undefined).text.replaceAll('\r\n', '')).not.toContain('\n');
  });

  test('an entry goes into an empty list or member, and a new file has the fields that the client requires', () => {
    for (const text of ['mcpServers: []\nname: x\n', 'mcpServers:\nname: x\n', 'mcpServers: [] # none\nname: x\n'])
      expect(parseYaml(yaml(text, ITEM).text)).toEqual({ mcpServers: [ITEM], name: 'x' });
    const made = yaml('', ITEM);
    expect(parseYaml(made.text)).toEqual({ ...EMPTY, mcpServers: [ITEM] });
    expect(parseYaml(yaml(made.text, undefined).text)).toEqual(EMPTY);
  });

  test.each([
    ['a: "CANARY', 'is not YAML (line 1)'],
    ['- CANARY', 'holds no map'],
    ['mcpServers: CANARY', 'is no list'],
    ['{ mcpServers: [{ name: other, key: CANARY }] }', 'without touching'],
    ['mcpServers:\n  - name: agent-broker\n  - name: agent-broker\n', 'listed twice'],
    ['a: CANARY\n---\nb: 1\n', 'YAML'],
  ])('%j is refused, and the error quotes nothing of the file', (text, says) => {
    expect(() => yaml(text, ITEM)).toThrow(CommandFailed);
    try {
      yaml(text, ITEM);
    } catch (error) {
      expect((error as Error).message).toContain(says);
      expect((error as Error).message).not.toContain('CANARY');
    }
  });

  test('adding and removing the entry preserve any other content of the file', () => {
    const key = fc.stringMatching(/^[a-zA-Z][\w .:#'"-]{0,12}$/).filter((one) => one !== 'mcpServers');
    const value = anyValue(key);
    const item = fc.record({ name: key.filter((one) => one !== 'agent-broker'), env: fc.dictionary(key, fc.string()) });
    fc.assert(
      fc.property(fc.dictionary(key, value), fc.array(item), (root, mcpServers) => {
        const file = { ...root, ...(mcpServers.length > 0 && { mcpServers }) };
        fc.pre(Object.keys(file).length > 0);
        const text = toYaml(file);
        const before = parseYaml(text);
        const added = yaml(text, ITEM);
        expect(parseYaml(added.text)).toEqual({ ...before, mcpServers: [...mcpServers, ITEM] });
        expect(parseYaml(yaml(added.text, undefined).text)).toEqual(before);
      }),
    );
  });
});
