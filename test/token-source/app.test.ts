/** Connections to an App: a token for each call, that is good for no more than the call needs. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { APP_ID, type AppPlatform, INSTALLATION, startAppPlatform } from '../world/app-platform.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { fresh, givenWorld, shared } from '../world/given.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, type Organisation } from '../world/world.ts';

const SCOPES = ['contents.read', 'contents.write', 'issues.read', 'issues.write', 'workflows.write', 'metadata.read'];
const grantOf = (constraints: object = {}, scopes = SCOPES) => ({
  codehost: { scopeList: scopes.map((one) => `codehost:${one}`), constraints: JSON.stringify(constraints) },
});
const ONLY_APP = { repos: ['acme/app'] };

const call = (method: string, endpoint: string, scope: string, data?: object) => ({
  platform: 'codehost',
  endpoint,
  method,
  scope: `codehost:${scope}`,
  ...(data && { data }),
});
const READ = call('GET', '/repos/acme/app/contents/README.md', 'contents.read');
const WRITE = call('PUT', '/repos/acme/app/contents/a.txt', 'contents.write', { message: 'm', content: 'YQ==' });

describe.each(STORES)(`connections to an App on %s${postgresNote}`, (store) => {
  const host = shared(() => startAppPlatform());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: host.address }));
  const organisation = fresh(() => world.organisation());
  beforeEach(() => {
    host.reset();
    host.now = () => world.running.broker.clock();
  });

  /** Applies a governance file that connects the App, as an owner does. */
  const apply = async (installation: string | null = INSTALLATION, pem = host.pem, to: Organisation = organisation) => {
    const text = JSON.stringify({
      platforms: {
        codehost: {
          use: 'github',
          base_url: host.url,
          auth: {
            type: 'app',
            app_id: APP_ID,
            private_key: { env: 'APP_KEY' },
            ...(installation !== null && { installation_id: installation }),
          },
        },
      },
      connections: { 'codehost-main': { platform: 'codehost' } },
    });
    return await to.ask('POST', '/owner/governance/apply', { text, values: { 'env:APP_KEY': pem } });
  };
  const connected = async () => {
    const applied = await apply();
    expect(applied.status, applied.text).toBe(200);
  };
  const agentWith = (constraints: object = {}, scopes = SCOPES): Promise<TestAgent> =>
    organisation.agent({ rules: ALLOW_ALL, grants: grantOf(constraints, scopes) });
  const last = (platform: AppPlatform = host) => platform.exchanges.at(-1);

  test('a call goes with a token of the installation, limited to the permissions of its scope', async () => {
    await connected();
    const agent = await agentWith();
    const answer = await agent.act(READ);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data.full_name).toBe('acme/app');
    expect(host.exchanges).toEqual([{ installation: INSTALLATION, permissions: { contents: 'read' } }]);
    // The platform echoes the token.
    expect(answer.body.data.echo).toBe('token [redacted]');
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'allowed', upstream_status: 200 });
    expect((await agent.act(READ)).status).toBe(200);
    expect(host.exchanges).toHaveLength(1);
  });

  test('on a grant with repositories the token is for the one repository of the call', async () => {
    await connected();
    const agent = await agentWith({ repos: ['acme/*'] });
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act({ ...READ, endpoint: '/repos/ACME/Web/contents/a' })).status).toBe(200);
    expect(host.exchanges.map(({ repositories }) => repositories)).toEqual([['app'], ['Web']]);
    // The platform itself refuses the token of one repository on the other, and for what the scope does not need.
    const [first = ''] = host.issued.keys();
    const ask = async (path: string, method = 'GET') =>
      (await fetch(host.url + path, { method, headers: { authorization: `Bearer ${first}` } })).status;
    expect(await ask('/repos/acme/app/contents/a')).toBe(200);
    expect(await ask('/repos/acme/web/contents/a')).toBe(404);
    expect(await ask('/repos/acme/app/contents/a', 'PUT')).toBe(403);
    expect(await ask('/repos/acme/app/issues')).toBe(403);
  });

  test('what a list of repositories allows without naming one goes with the least of the installation', async () => {
    await connected();
    const agent = await agentWith(ONLY_APP);
    expect((await agent.act(call('GET', '/rate_limit', 'metadata.read'))).status).toBe(200);
    expect(last()).toEqual({ installation: INSTALLATION, permissions: { metadata: 'read' } });
  });

  test('workflows are asked for only where the agent may write them', async () => {
    await connected();
    const without = SCOPES.filter((one) => one !== 'workflows.write');
    expect((await (await agentWith(ONLY_APP, without)).act(WRITE)).status).toBe(200);
    expect(last()?.permissions).toEqual({ contents: 'write' });
    expect((await (await agentWith(ONLY_APP)).act(WRITE)).status).toBe(200);
    expect(last()?.permissions).toEqual({ contents: 'write', workflows: 'write' });
    // A rule that holds or refuses what the scope allows holds back the permission, too.
    for (const rule of [
      { effect: 'require_approval', scopes: ['codehost:workflows.write'] },
      { effect: 'deny', scopes: ['codehost:workflows.write'], when: 'request.method == "PUT"' },
    ]) {
      const held = await organisation.agent({ rules: [...ALLOW_ALL, rule], grants: grantOf(ONLY_APP) });
      expect((await held.act(WRITE)).status).toBe(200);
      const token = host.calls.at(-1)!.token;
      expect(host.issued.get(token)?.permissions).toEqual({ contents: 'write' });
    }
  });

  test('a hundred calls at once make one exchange', async () => {
    await connected();
    host.slowMs = 200;
    const agents = await Promise.all(Array.from({ length: 10 }, () => agentWith(ONLY_APP)));
    const answers = await Promise.all(agents.flatMap((agent) => Array.from({ length: 10 }, () => agent.act(READ))));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(host.exchanges).toHaveLength(1);
    expect(host.calls).toHaveLength(100);
  });

  test('a token is not used within five minutes of its end, and is found again after a restart', async () => {
    await connected();
    const agent = await agentWith(ONLY_APP);
    expect((await agent.act(READ)).status).toBe(200);
    await world.restart();
    host.now = () => world.running.broker.clock();
    expect((await agent.act(READ)).status).toBe(200);
    expect(host.exchanges).toHaveLength(1);
    world.clock.skewMs = 54 * 60_000;
    expect((await agent.act(READ)).status).toBe(200);
    expect(host.exchanges).toHaveLength(1);
    world.clock.skewMs = 56 * 60_000;
    expect((await agent.act(READ)).status).toBe(200);
    expect(host.exchanges).toHaveLength(2);
  });
});
