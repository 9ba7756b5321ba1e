/** `/git` and `/proxy` on their own host (PROXY_HOST): served only there, and nothing else is. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { send, type TestAgent } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { exchange } from '../world/raw.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, type Organisation, startWorld, type World } from '../world/world.ts';

/** A name of this machine by which the broker is not reached otherwise. */
const OWN = '127.0.0.2';

describe('PROXY_HOST', () => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let base: string;
  let raw: string;
  beforeAll(async () => {
    world = await startWorld('sqlite', { HOST: '0.0.0.0', PROXY_HOST: OWN });
    organisation = await world.organisation();
    await organisation.platform();
    const { url } = world.upstream;
    await organisation.platform({ id: 'codehost', manifest: { ...github, base_url: url, git_base_url: url } });
    agent = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { demo: {}, codehost: { scopeList: ['codehost:contents.read'] } },
    });
    base = world.running.baseUrl;
    raw = `http://${OWN}:${new URL(base).port}`;
  });
  const bearer = () => ({ authorization: `Bearer ${agent.token()}` });
  const basic = () => ({ authorization: `Basic ${btoa(`agent:${agent.token()}`)}` });
  const REFS = '/git/acme/app.git/info/refs?service=git-upload-pack';

  test('serves /git and /proxy, and names the host of everything else', async () => {
    expect(await send(`${raw}/proxy/demo-main/items`, { headers: bearer() })).toMatchObject({ status: 200 });
    await send(`${raw}${REFS}`, { headers: basic() });
    expect(world.upstream.seen.at(-1)?.target).toBe('/acme/app.git/info/refs?service=git-upload-pack');
    const seen = world.upstream.seen.length;
    for (const path of [
      ...[
        '/',
        '/console',
        '/console/app.js',
        '/docs',
        '/approve/x',
        '/health',
        '/livez',
        '/v1/agents/me',
        '/v1/actions',
      ],
      ...['/owner/me', '/mcp', '/agent-manifest.json', '/proxy', '/proxys/x', '/gitx', '/nothing'],
    ]) {
      const answer = await send(`${raw}${path}`, { headers: bearer() });
      expect(answer, path).toMatchObject({ status: 421, body: { error: 'misdirected_request' } });
      expect(answer.body.detail).toContain(base);
    }
    expect(world.upstream.seen.length).toBe(seen);
  });

  test('is the only one that serves them, and is named in the refusal', async () => {
    const seen = world.upstream.seen.length;
    for (const at of [base, base.replace('localhost', '127.0.0.1')]) {
      const proxied = await send(`${at}/proxy/demo-main/items`, { headers: bearer() });
      expect(proxied).toMatchObject({ status: 421, body: { detail: expect.stringContaining(raw) } });
      expect(proxied.headers.get('content-type')).toContain('application/problem+json');
      const refs = await send(`${at}${REFS}`, { headers: basic() });
      expect(refs).toMatchObject({ status: 421, text: expect.stringContaining(raw) });
      expect(await send(`${at}/v1/agents/me`, { headers: bearer() })).toMatchObject({ status: 200 });
    }
    expect(world.upstream.seen.length).toBe(seen);
  });

  test('is read from Host and from an absolute target, case-insensitively', async () => {
    const port = Number(new URL(base).port);
    const ask = (line: string, host: string) =>
      exchange(port, `${line}\r\nHost: ${host}\r\nAuthorization: Bearer ${agent.token()}\r\nConnection: close\r\n\r\n`);
    const cases: [string, string, number][] = [
      ['GET /proxy/demo-main/items HTTP/1.1', `${OWN}:1`, 200],
      ['GET /proxy/demo-main/items HTTP/1.1', 'other.example', 421],
      // Found by its host; /proxy itself accepts no absolute target.
      [`GET http://${OWN}/proxy/demo-main/items HTTP/1.1`, 'localhost', 404],
      [`GET http://localhost/proxy/demo-main/items HTTP/1.1`, OWN, 421],
      [`GET http://localhost/v1/agents/me HTTP/1.1`, OWN, 200],
      ['GET /v1/agents/me HTTP/1.1', OWN, 421],
      ['GET /%70roxy/demo-main/items HTTP/1.1', OWN, 421],
      ['GET //proxy/demo-main/items HTTP/1.1', OWN, 421],
      ['GET /proxy/../v1/agents/me HTTP/1.1', OWN, 404],
    ];
    for (const [line, host, status] of cases) {
      const answer = await ask(line, host);
      expect(answer.status, `${line} at ${host}: ${answer.body}`).toBe(status);
    }
    // HTTP/1.0 allows a request without a Host header.
    expect((await exchange(port, 'GET /proxy/demo-main/items HTTP/1.0\r\n\r\n')).status).toBe(421);
  });

  test('is used in the broker’s descriptions and in URLs of answers', async () => {
    expect((await send(`${base}/agent-manifest.json`, {})).body).toMatchObject({ base_url: base, proxy_base_url: raw });
    expect((await send(`${base}/llms.txt`, {})).text).toContain(
      `The base address is ${base}; /git is at ${raw} instead.`,
    );
    const { paths, servers } = (await send(`${base}/v1/openapi.json`, {})).body;
    expect(servers).toEqual([{ url: base }]);
    expect(paths['/git/{owner}/{repo}/info/refs'].get.servers).toEqual([{ url: raw }]);
    expect(paths['/v1/actions'].post).not.toHaveProperty('servers');
    world.upstream.answer = (_, response) => {
      response.writeHead(302, { location: `${world.upstream.url}/v1/items/2` });
      response.end();
    };
    const moved = await send(`${raw}/proxy/demo-main/items`, { headers: bearer() });
    world.upstream.answer = undefined;
    expect(moved.headers.get('location')).toBe(`${raw}/proxy/demo-main/items/2`);
    const key = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, {
      ...{ label: 'x', connection: 'demo-main' },
    });
    expect(key.body.url).toBe(`${raw}/proxy/demo-main`);
    expect(await send(`${key.body.url}/items`, { headers: { authorization: `Bearer ${key.body.key}` } })).toMatchObject(
      {
        status: 200,
      },
    );
  });

  test('is found automatically by "run" and "git-setup"', async () => {
    const profile = profileOf(agent);
    const curl =
      'curl -sS -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items"';
    const ended = await run(profile, sh(curl));
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
    expect(world.upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${CANARY}`);

    const home = newFolder();
    const env = { HOME: home, AGENT_BROKER_PROFILE: profile, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };
    const setup = (...words: string[]) => runCommand(['git-setup', ...words], { cwd: home, env });
    expect((await setup('acme/app')).code).toBe(0);
    const config = () => readFileSync(join(home, '.gitconfig'), 'utf8');
    expect(config()).toContain(`[url "${raw}/git/acme/app"]`);
    const credential = (url: string) =>
      execFileSync('git', ['credential', 'fill'], {
        input: `url=${url}\n\n`,
        env: { ...process.env, ...env, GIT_ASKPASS: 'false' },
        encoding: 'utf8',
      });
    const [, token = ''] = /^password=(.+)$/m.exec(credential(`${raw}/git/acme/app.git`)) ?? [];
    const seen = world.upstream.seen.length;
    await send(`${raw}${REFS}`, { headers: { authorization: `Basic ${btoa(`agent:${token}`)}` } });
    expect(world.upstream.seen.length).toBe(seen + 1);
    expect((await setup('--undo')).code).toBe(0);
    expect(config()).not.toContain(raw);
  });
});

test('a listener on loopback also accepts the name of PROXY_HOST, and no other', async () => {
  const world = await startWorld('sqlite', { PROXY_HOST: 'raw.broker.example' });
  const port = Number(new URL(world.running.baseUrl).port);
  const ask = async (path: string, host: string) =>
    (await exchange(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status;
  expect(await ask('/proxy/x/y', 'RAW.broker.example')).toBe(401);
  expect(await ask('/health', 'raw.broker.example')).toBe(421);
  expect(await ask('/proxy/x/y', 'evil.example')).toBe(421);
  expect(await ask('/proxy/x/y', 'raw.broker.example.evil.example')).toBe(421);
  expect(await ask('/health', 'localhost')).toBe(200);
});
