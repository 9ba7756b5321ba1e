/** Connections to an App: each call uses a token that is limited to what the call needs. */
import { describe, expect, test } from 'vitest';
import { purgeUpstreamTokens } from '../../broker/store/upstream-tokens.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { sized } from '../world/runner/thorough.ts';
import { INSTALLATION } from '../world/servers/app-platform.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL } from '../world/world.ts';
import { callOf, givenAppWorld, grantOf, ONLY_APP, READ, SCOPES, WRITE } from './app-world.ts';

describe.each(ONE_STORE)(`connections to an App on %s${postgresNote}`, (store) => {
  const app = givenAppWorld(store);
  const { host, world, organisation } = app;
  /** Expects a call that the platform accepts. */
  async function made(agent: Pick<TestAgent, 'act'>, call: Record<string, unknown> = READ): Promise<Answer> {
    const answer = await agent.act(call);
    expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 200]);
    return answer;
  }

  test('a call uses a token of the installation, limited to the permissions of its scope', async () => {
    const agent = await app.agent({});
    const answer = await expectStatus(200, agent.act(READ));
    expect(answer.body.data.full_name).toBe('acme/app');
    expect(host.exchanges).toEqual([{ installation: INSTALLATION, permissions: { contents: 'read' } }]);
    // The platform echoes the token, which is redacted.
    expect(answer.body.data.echo).toBe('token [redacted]');
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'allowed', upstream_status: 200 });
    await made(agent, READ);
    expect(host.exchanges).toHaveLength(1);
  });

  test('under a grant with repositories the token is for the call’s repository only', async () => {
    const agent = await app.agent({ repos: ['acme/*'] });
    await made(agent, READ);
    await made(agent, { ...READ, endpoint: '/repos/ACME/Web/contents/a' });
    expect(host.exchanges.map(({ repositories }) => repositories)).toEqual([['app'], ['Web']]);
    // The platform itself refuses the token of one repository for the other, and for what the scope does not need.
    const [first = ''] = host.issued.keys();
    const ask = async (path: string, method = 'GET') =>
      (await fetch(host.url + path, { method, headers: { authorization: `Bearer ${first}` } })).status;
    expect(await ask('/repos/acme/app/contents/a')).toBe(200);
    expect(await ask('/repos/acme/web/contents/a')).toBe(404);
    expect(await ask('/repos/acme/app/contents/a', 'PUT')).toBe(403);
    expect(await ask('/repos/acme/app/issues')).toBe(403);
  });

  test.each([
    ['a folder', 'GET', '/repos/acme/app/contents/generate', 'contents.read', undefined],
    ['a file', 'PUT', '/repos/acme/app/contents/src/generate', 'contents.write', { message: 'm', content: 'YQ==' }],
    ['a branch', 'GET', '/repos/acme/app/branches/generate', 'contents.read', undefined],
    ['a label', 'DELETE', '/repos/acme/app/issues/7/labels/generate', 'issues.write', undefined],
  ])('%s named generate belongs to its repository like any other', async (_what, method, path, scope, data) => {
    const agent = await app.agent(ONLY_APP);
    const answer = await agent.act(callOf(method, path, scope, data));
    expect([host.exchanges.length, host.exchanges[0]?.repositories], answer.text).toEqual([1, ['app']]);
  });

  test('a call that creates a repository from a template uses a token without a repository limit', async () => {
    host.installations.get(INSTALLATION)!.permissions.administration = 'write';
    const agent = await app.agent({ ...ONLY_APP, allow_repo_creation: true }, ['repo.create']);
    await made(
      agent,
      callOf('POST', '/repos/acme/app/generate', 'repo.create', { owner: 'acme', name: 'new', private: true }),
    );
    expect(host.exchanges).toEqual([
      { installation: INSTALLATION, permissions: { administration: 'write', contents: 'read' } },
    ]);
  });

  test('a call allowed without a repository uses a token of the whole installation with minimal permissions', async () => {
    const agent = await app.agent(ONLY_APP);
    await made(agent, callOf('GET', '/rate_limit', 'metadata.read'));
    expect(host.exchanges.at(-1)).toEqual({ installation: INSTALLATION, permissions: { metadata: 'read' } });
  });

  test('a child with a narrower list than its parent’s gets tokens for its own repositories only', async () => {
    const parent = await app.agent({});
    const child = await childOf(world, organisation, parent, {
      grants: [{ platform: 'codehost', scopes: ['codehost:contents.read'], constraints: ONLY_APP }],
    });
    await made(child, READ);
    expect(host.exchanges).toEqual([
      { installation: INSTALLATION, repositories: ['app'], permissions: { contents: 'read' } },
    ]);
  });

  test('the API of GitHub Enterprise Server, below a path, is supported', async () => {
    await app.apply({ platform: { base_url: `${host.url}/api/v3` } });
    await made(await app.agent(), READ);
    expect(host.calls.map(({ call }) => call)).toEqual(['GET /repos/acme/app/contents/README.md']);
    // A token of one base URL is not used for another one.
    await app.apply();
    await made(await app.agent(), READ);
    expect(host.exchanges).toHaveLength(2);
  });

  test('a held call gets its token after approval', async () => {
    const held = await organisation.agent({ rules: [{ effect: 'require_approval' }], grants: grantOf(ONLY_APP) });
    const { body } = await held.act(WRITE);
    expect(host.exchanges).toEqual([]);
    await expectStatus(200, organisation.approve(body.approval_id));
    await expect.poll(() => host.calls.length, { timeout: 5_000 }).toBe(1);
    expect(host.exchanges.at(-1)?.repositories).toEqual(['app']);
  });

  test('an operation that needs another permission than its scope gets that one', async () => {
    host.installations.get(INSTALLATION)!.permissions = { environments: 'write', secrets: 'write' };
    const agent = await app.agent(ONLY_APP, ['secrets.write', 'secrets.read']);
    const secret = { encrypted_value: 'YQ==', key_id: '1' };
    await made(agent, callOf('PUT', '/repos/acme/app/environments/prod/secrets/X', 'secrets.write', secret));
    await made(agent, callOf('GET', '/repos/acme/app/environments/prod/secrets/X', 'secrets.read'));
    await made(agent, callOf('PUT', '/repos/acme/app/actions/secrets/X', 'secrets.write', secret));
    expect(host.exchanges.map(({ permissions }) => permissions)).toEqual([
      { environments: 'write' },
      { environments: 'read' },
      { secrets: 'write' },
    ]);
    // The App lacks the permission for it, and serves the rest of the scope.
    const dependabot = await agent.act(callOf('PUT', '/repos/acme/app/dependabot/secrets/X', 'secrets.write', secret));
    expect([dependabot.status, dependabot.body.error], dependabot.text).toEqual([409, 'platform_reauth_needed']);
    await made(agent, callOf('DELETE', '/repos/acme/app/actions/secrets/X', 'secrets.write'));
  });

  test('an owner can add permissions of operations to those of the built-in platform', async () => {
    const own = { 'PUT /repos/*/*/contents/**': { contents: 'write' } };
    await app.apply({ platform: { app_operations: own } });
    await made(await app.agent(ONLY_APP), WRITE);
    expect(host.exchanges.at(-1)?.permissions).toEqual({ contents: 'write' });
  });

  test('a call that needs several scopes for its content gets the permissions of all of them', async () => {
    host.installations.get(INSTALLATION)!.permissions = { issues: 'write', pull_requests: 'write', contents: 'read' };
    const content_scopes = { 'POST /repos/*/*/issues': [{ pointer: '/assignees', scope: 'codehost:pulls.review' }] };
    const call = callOf('POST', '/repos/acme/app/issues', 'pulls.review', { title: 'x', assignees: ['ann'] });
    const scopes = ['issues.write', 'pulls.review'];
    await app.apply({ platform: { content_scopes } });
    await made(await app.agent(ONLY_APP, scopes), call);
    expect(host.exchanges.at(-1)?.permissions).toEqual({ issues: 'write', pull_requests: 'write' });
    // Permissions of the operation replace those of its own scope only.
    const app_operations = { 'POST /repos/*/*/issues': { contents: 'read' } };
    await app.apply({ platform: { content_scopes, app_operations } });
    await (await app.agent(ONLY_APP, scopes)).act(call);
    expect(host.exchanges.at(-1)?.permissions).toEqual({ contents: 'read', pull_requests: 'write' });
  });

  test('the workflows permission is requested only when the agent may write workflows', async () => {
    const without = SCOPES.filter((one) => one !== 'workflows.write');
    await made(await app.agent(ONLY_APP, without), WRITE);
    expect(host.exchanges.at(-1)?.permissions).toEqual({ contents: 'write' });
    await made(await app.agent(ONLY_APP), WRITE);
    expect(host.exchanges.at(-1)?.permissions).toEqual({ contents: 'write', workflows: 'write' });
    // A rule that holds or refuses what the scope allows removes the permission too.
    for (const rule of [
      { effect: 'require_approval', scopes: ['codehost:workflows.write'] },
      { effect: 'deny', scopes: ['codehost:workflows.write'], when: 'request.method == "PUT"' },
      // Rules about pushes, which use the contents scope.
      { effect: 'deny', scopes: ['codehost:workflows.write'], endpoints: ['/git/**'] },
      { effect: 'require_approval', scopes: ['codehost:workflows.*'], endpoints: ['/git/*/*/git-receive-pack'] },
    ]) {
      const held = await organisation.agent({ rules: [...ALLOW_ALL, rule], grants: grantOf(ONLY_APP) });
      await made(held, WRITE);
      const token = host.calls.at(-1)!.token;
      expect(host.issued.get(token)?.permissions).toEqual({ contents: 'write' });
    }
    // These rules match no call with the contents scope.
    for (const rule of [
      { effect: 'deny', scopes: ['codehost:workflows.write'], endpoints: ['/orgs/**'] },
      { effect: 'deny', scopes: ['codehost:*'], endpoints: ['/git/acme/app/git-receive-pack'] },
    ]) {
      const free = await organisation.agent({ rules: [...ALLOW_ALL, rule], grants: grantOf(ONLY_APP) });
      await made(free, WRITE);
      const token = host.calls.at(-1)!.token;
      expect(host.issued.get(token)?.permissions).toEqual({ contents: 'write', workflows: 'write' });
    }
  });

  test('an agent that is suspended while its call waits for a token sends nothing', async () => {
    const agent = await app.agent();
    host.slowMs = 1_500;
    const waiting = agent.act(WRITE);
    await expect.poll(() => host.exchanges.length).toBe(1);
    expect((await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {})).status).toBe(200);
    const answer = await waiting;
    expect([answer.status, answer.body.error], answer.text).toEqual([403, 'agent_halted']);
    expect(host.calls).toEqual([]);
  });

  test('organisations share no token, even with the same App and installation', async () => {
    await made(await app.agent());
    const other = await world.organisation();
    expect((await app.apply({ to: other })).status).toBe(200);
    await made(await other.agent({ rules: ALLOW_ALL, grants: grantOf(ONLY_APP) }));
    expect(host.exchanges).toHaveLength(2);
    expect(new Set(host.calls.map(({ token }) => token)).size).toBe(2);
  });

  test('only expired tokens are deleted', async () => {
    await made(await app.agent());
    const count = async () =>
      (
        await world.db
          .selectFrom('upstream_tokens')
          .select('id')
          .where('organisation_id', '=', organisation.id)
          .execute()
      ).length;
    const now = world.running.broker.clock();
    await purgeUpstreamTokens(world.db, now);
    expect(await count()).toBe(1);
    await purgeUpstreamTokens(world.db, now + 3601_000);
    expect(await count()).toBe(0);
  });

  test('many concurrent calls make one exchange', async () => {
    host.slowMs = 200;
    const agents = await Promise.all(Array.from({ length: 5 }, () => app.agent(ONLY_APP)));
    const answers = await Promise.all(
      agents.flatMap((agent) => Array.from({ length: sized(4, 20) }, () => agent.act(READ))),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(host.exchanges).toHaveLength(1);
    expect(host.calls).toHaveLength(answers.length);
  });

  test('a token is not used within five minutes of its expiry, and is reused after a restart', async () => {
    const agent = await app.agent(ONLY_APP);
    await made(agent, READ);
    await world.restart();
    host.now = () => world.running.broker.clock();
    await made(agent, READ);
    expect(host.exchanges).toHaveLength(1);
    world.clock.skewMs = 54 * 60_000;
    await made(agent, READ);
    expect(host.exchanges).toHaveLength(1);
    world.clock.skewMs = 56 * 60_000;
    await made(agent, READ);
    expect(host.exchanges).toHaveLength(2);
  });
});
