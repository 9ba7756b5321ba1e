/** `agent-broker run --port`: a port that stands for a platform, for programs that can be configured with a host and a port only. */

import { type AddressInfo, createServer } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';
import { js, profileOf, run, sh } from './run-world.ts';

describe('the port of a connection', () => {
  let agent: TestAgent;
  let profile: string;
  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    for (const id of ['demo', 'demo_2']) await organisation.platform({ id });
    await organisation.platform({ id: 'whole', manifest: { base_url: world.upstream.url } });
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: {}, demo_2: {}, whole: {} } });
    profile = profileOf(agent);
  });
  const freePort = () =>
    new Promise<number>((done) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo;
        server.close(() => done(port));
      });
    });

  test('serves the whole base URL of the platform', async () => {
    const port = await freePort();
    const ended = await run(profile, [
      ...['--port', 'demo-main', '--port', `whole-main=${port}`],
      ...js(`import { request } from 'node:http';
        const { AGENT_BROKER_DEMO_MAIN_PORT, AGENT_BROKER_WHOLE_MAIN_PORT, AGENT_BROKER_RUN_KEY } = process.env;
        console.log(AGENT_BROKER_WHOLE_MAIN_PORT);
        for (const port of [AGENT_BROKER_DEMO_MAIN_PORT, AGENT_BROKER_WHOLE_MAIN_PORT]) {
          const headers = { authorization: 'Bearer ' + AGENT_BROKER_RUN_KEY };
          const asking = request({ host: 'localhost', family: 4, port, path: '/v1/items', headers });
          const response = await new Promise((done) => asking.on('response', done).end());
          for await (const part of response) process.stdout.write(part + ' ' + response.statusCode + '\\n');
        }`),
    ]);
    const [written, one, two] = ended.stdout.split('\n');
    expect(written, ended.stderr).toBe(String(port));
    expect(one).toBe('{"method":"GET","target":"/v1/items","body":null} 200');
    // No scope of this platform has such a path.
    expect(two).toMatch(/endpoint_scope_mismatch.* 403$/);
  });

  test("requires the placeholder and its own Host header, and serves paths below the platform's base path only", async () => {
    const before = world.upstream.seen.length;
    const asked: [string, string][] = [
      ['/v1/items', ''],
      ['/v1/items', '-H "Authorization: Bearer wrong"'],
      ['/v1/items', '-H "$KEY" -H "Host: evil.example"'],
      ['/v1/items', '-H "$KEY" -H "Host: $RUN_HOST"'],
      ['/v1/items', '-H "$KEY" -H "Origin: null"'],
      ['/items', '-H "$KEY"'],
      ['/proxy/demo-main/items', '-H "$KEY"'],
      ['/v1/../v1/items', '-H "$KEY"'],
    ];
    const lines = asked.map(([path, words]) => `ask ${words} "http://127.0.0.1:$AGENT_BROKER_DEMO_MAIN_PORT${path}"`);
    const ended = await run(profile, [
      ...['--port', 'demo-main'],
      ...sh(`ask() { curl -sS --path-as-is -o /dev/null -w '%{http_code}\n' "$@"; }
        RUN_HOST=$(echo "$AGENT_BROKER_RUN_URL" | cut -d / -f 3)
        KEY="Authorization: Bearer $AGENT_BROKER_RUN_KEY"
        ${lines.join('\n')}`),
    ]);
    expect(ended.stdout.split('\n'), ended.stderr).toEqual([
      '403',
      '403',
      '403',
      '403',
      '403',
      '404',
      '404',
      '404',
      '',
    ]);
    expect(world.upstream.seen.length).toBe(before);
  });

  test("refusals of the sidecar have the form of the platform's errors for its command, and a generic form for others", async () => {
    const error_body = { fault: { text: '{detail}', code: '{code}', status: '{status}' } };
    await organisation.platform({ id: 'formed', manifest: { error_body } });
    const one = await organisation.agent({ rules: ALLOW_ALL, grants: { formed: {} } });
    const ended = await run(profileOf(one), [
      ...['--port', 'formed-main', '--caller', 'slack:U1'],
      ...sh(`KEY="Authorization: Bearer $AGENT_BROKER_RUN_KEY"; at=http://127.0.0.1:$AGENT_BROKER_FORMED_MAIN_PORT
        ask() { curl -sS -w '%{http_code}\n' "$@"; }
        ask -H "$KEY" $at/v2/items
        ask -H "$KEY" -H "X-Svc-Caller: id slack:U2" $at/v1/items
        ask -H "$KEY" -H "X-Svc-Caller: id slack:U2" $AGENT_BROKER_RUN_URL/proxy/formed-main/items
        ask -H "$KEY" "$AGENT_BROKER_RUN_URL/proxy/formed-main/%2e%2e/x"
        ask -H "$KEY" $AGENT_BROKER_RUN_URL/proxy/demo-main/items
        ask $at/v1/items
        ask "$AGENT_BROKER_RUN_URL/proxy/formed-main/items?X-Amz-Credential=AKIA&X-Amz-Signature=00"`),
    ]);
    const told = ended.stdout
      .trim()
      .split(/\n(?=\{)/)
      .map((text) => text.split('\n'));
    expect(
      told.map(([, status]) => status),
      ended.stderr,
    ).toEqual(['404', '403', '403', '404', '404', '403', '403']);
    const [path, caller, sameCaller, dots, other, stranger, preSigned] = told.map(([body = '']) => JSON.parse(body));
    expect(path.fault).toEqual({
      text: expect.stringMatching(/^agent-broker: not_found: There is no such address\. .* has: \/v1\.$/),
      ...{ code: 'not_found', status: 404 },
    });
    expect(caller.fault).toMatchObject({
      text: expect.stringContaining('Leave X-Svc-Caller out'),
      code: 'caller_differs',
    });
    expect(sameCaller).toEqual(caller);
    expect(dots.fault.code).toBe('not_found');
    // A connection that this run does not have, so the form of its platform's errors is unknown.
    expect(other).toMatchObject({ title: 'Not Found', status: 404, error: 'not_found' });
    expect(stranger).toEqual({ error: 'wrong_placeholder', detail: expect.stringContaining('AGENT_BROKER_RUN_KEY') });
    expect(preSigned).toEqual({ error: 'wrong_placeholder', detail: expect.stringContaining('Pre-signed URLs') });
  });

  test('invalid arguments are reported before the command is started', async () => {
    const taken = Number(new URL(world.running.baseUrl).port);
    const refused: [string[], RegExp, code?: number][] = [
      [['--port', 'crm'], /has no connection crm\. It has: /],
      [['--port', 'demo-main=70000'], /70000 is no port/, 2],
      [['--caller', 'U1'], /--caller/, 2],
      [['--port', 'demo-main=x'], /has no connection demo-main=x/],
      [['--connection', 'whole-main', '--port', 'demo-main'], /has no connection demo-main\. It has: whole-main\./],
      [['--port', `demo-main=${taken}`], /The sidecar cannot listen: .*EADDRINUSE/],
      [['--port', 'demo-main', '--port', 'demo-main'], /would use the same variable AGENT_BROKER_DEMO_MAIN_PORT/],
      [['--proxy'], /https address/],
    ];
    for (const [words, why, code = 1] of refused) {
      const ended = await run(profile, [...words, ...sh('echo started')]);
      expect(ended).toMatchObject({ code, stdout: '' });
      expect(ended.stderr).toMatch(why);
    }
  });
});
