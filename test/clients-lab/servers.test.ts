/** Third-party MCP servers behind the broker: one that speaks stdio, by the lines of docs/platforms.md, and the protocol authors' server with all features. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { callOf } from '../upstream-mcp/connected.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, type Organisation, startWorld, type World } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';

const KEY = 'b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0';
const page = readFileSync(join(ROOT, 'docs/platforms.md'), 'utf8');
/** Returns the block of the page that begins with this line. */
const block = (fence: string): string => new RegExp(`^\`\`\`${fence} server\\n(.*?)^\`\`\``, 'ms').exec(page)![1]!;
/** Returns the program that a package of the lab installs. */
const program = (name: string): string => {
  const path = load.resolve(`${name}/package.json`);
  const { bin } = JSON.parse(readFileSync(path, 'utf8')) as { bin: string | Record<string, string> };
  return `${process.execPath} ${join(dirname(path), typeof bin === 'string' ? bin : Object.values(bin)[0]!)}`;
};

/** Runs a shell line until the end of the test file, and waits until something listens on the port. */
async function serve(line: string, port: number, env: Record<string, string>): Promise<void> {
  const child = spawn('bash', ['-c', `exec ${line}`], { env: { PATH: process.env.PATH!, ...env }, stdio: 'pipe' });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
  afterFile(() => void child.kill());
  const answered = async () => {
    await fetch(`http://127.0.0.1:${port}/`).catch((error) => {
      throw new Error(`nobody listens at ${port}: ${said}`, { cause: error });
    });
  };
  await vi.waitFor(answered, { timeout: 20_000, interval: 50 });
}

describe.skipIf(withoutLab)(`MCP servers${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, { timeout: 180_000 }, () => {
  const ports = { notes: 0, everything: 0 };
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    for (const name of ['notes', 'everything'] as const) ports[name] = await freePort();
    const own = Object.values(ports).map((port) => `127.0.0.1:${port}`);
    world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: own.join() });
    organisation = await world.organisation();
  });

  test('over stdio: a read, a write that is approved, and a 401 for a client without the key', async () => {
    const home = newFolder();
    mkdirSync(join(home, 'notes'));
    writeFileSync(join(home, 'notes/today.txt'), 'Buy milk.');
    const port = String(ports.notes);
    const line = block('sh')
      .replace('npx -y mcp-proxy', program('mcp-proxy'))
      .replace('npx -y @modelcontextprotocol/server-filesystem', program('@modelcontextprotocol/server-filesystem'))
      .replace('8090', port)
      .replace('MCP_PROXY_API_KEY=$NOTES_KEY ', '');
    expect(line).not.toContain('npx');
    await serve(line, ports.notes, { HOME: home, MCP_PROXY_API_KEY: KEY });
    const applied = await organisation.ask('POST', '/owner/governance/apply', {
      text: block('yaml').replace('8090', port),
      values: { 'env:NOTES_KEY': KEY },
    });
    expect(applied.status, applied.text).toBe(200);
    const agent = await organisation.agent({
      rules: [
        { effect: 'allow', scopes: ['notes:read'] },
        { effect: 'require_approval', scopes: ['notes:write'] },
      ],
      grants: { notes: { scopeList: ['notes:read', 'notes:write'] } },
    });
    const file = join(home, 'notes/today.txt');
    const call = (tool: string, scope: string, data: object) =>
      agent.act({ ...callOf(tool, scope, data), platform: 'notes' });
    const read = await call('read_text_file', 'notes:read', { path: file });
    expect([read.status, read.body.data?.structuredContent], read.text).toEqual([200, { content: 'Buy milk.' }]);
    const held = await expectStatus(202, call('write_file', 'notes:write', { path: file, content: 'Buy bread.' }));
    expect(readFileSync(file, 'utf8')).toBe('Buy milk.');
    await expectStatus(200, organisation.approve(held.body.approval_id));
    await expect.poll(() => readFileSync(file, 'utf8')).toBe('Buy bread.');
    const refused = await call('write_file', 'notes:read', { path: file, content: '' });
    expect([refused.status, refused.body.reason]).toEqual([403, 'endpoint_scope_mismatch']);
    await expectStatus(401, fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', body: '{}' }));
  });

  describe('a server with all features of the protocol', () => {
    let agent: TestAgent;
    beforeAll(async () => {
      const line = `${program('@modelcontextprotocol/server-everything')} streamableHttp`;
      await serve(line, ports.everything, { PORT: String(ports.everything) });
      const manifest = {
        kind: 'mcp',
        base_url: `http://127.0.0.1:${ports.everything}/mcp`,
        scopes: { 'tools:all': ['tool *'] },
      };
      await organisation.platform({ id: 'tools', manifest });
      agent = await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } });
    });

    test.each<[string, object, unknown]>([
      ['echo', { message: 'hi' }, { content: [{ type: 'text', text: 'Echo: hi' }] }],
      [
        'get-structured-content',
        { location: 'Chicago' },
        expect.objectContaining({
          structuredContent: { temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 },
        }),
      ],
      // The server sends progress before its answer.
      [
        'trigger-long-running-operation',
        { duration: 0.2, steps: 2 },
        { content: [{ type: 'text', text: expect.stringContaining('completed') }] },
      ],
      // The server offers this tool only as a task (2025-11-25), of four seconds.
      [
        'simulate-research-query',
        { topic: 'governance' },
        expect.objectContaining({
          content: [{ type: 'text', text: expect.stringContaining('# Research Report: governance') }],
        }),
      ],
      ['get-tiny-image', {}, { content: expect.arrayContaining([expect.objectContaining({ type: 'image' })]) }],
      ['get-sum', { a: 'one' }, expect.objectContaining({ isError: true })],
    ])('%s %j', async (tool, data, answer) => {
      const called = await agent.act(callOf(tool, 'tools:all', data));
      expect([called.status, called.body.data], called.text.slice(0, 500)).toEqual([200, answer]);
    });
  });
});
