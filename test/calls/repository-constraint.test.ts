/** The table of the specification's "Repository constraint", by real calls: each row with a counter-example that passes. */
import { describe, expect, test } from 'vitest';
import { actThrough, deniedThrough, ENTRY_POINTS } from '../proxy/entry-points.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const SCOPES = {
  'codehost:any': ['GET /**', 'POST /**', 'PUT /**', 'PATCH /**', 'DELETE /**', 'query *', 'mutation *'],
  'codehost:stars': ['GET /gists/*/star'],
};
const LIST = { repos: ['acme/app', 'tools/*'] };

describe.each(ONE_STORE)(`a grant with repos, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(async () => {
    const made = await world.demoOrganisation();
    await made.platform({ id: 'codehost', manifest: { scopes: SCOPES, graphql: { path: '/graphql' } } });
    return made;
  });

  const limited = async (constraints: object = LIST, rules: readonly unknown[] = ALLOW_ALL) =>
    organisation.agent({
      policy: await organisation.policy(rules),
      grants: { codehost: { scopeList: Object.keys(SCOPES), constraints: JSON.stringify(constraints) } },
    });
  const request = (line: string, data?: object) => {
    const [method, endpoint] = line.split(' ');
    return { platform: 'codehost', scope: 'codehost:any', method, endpoint, ...(data && { data }) };
  };
  describe.each(ENTRY_POINTS)('through %s', (entryPoint) => {
    const refused = async (agent: TestAgent, line: string, violating: string[], data?: object) => {
      const answer = await deniedThrough(entryPoint, world, agent, request(line, data), 'repo_not_allowed');
      expect(answer.body.violating).toEqual(violating);
      expect(answer.body.constraint).toEqual({ kind: 'repos', reason: 'repo_not_allowed', violating });
      const { row } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.parse(row.violating ?? 'null')).toEqual(violating);
    };
    const passes = async (agent: TestAgent, line: string, data?: object) => {
      await expectStatus(200, actThrough(entryPoint, agent, request(line, data)));
    };

    test('REST reads and writes below a repository that is not listed are refused', async () => {
      const agent = await limited();
      await refused(agent, 'GET /repos/acme/other/contents/x', ['acme/other']);
      await refused(agent, 'PATCH /repos/evil/app', ['evil/app'], { description: 'x' });
      await refused(agent, 'GET /repositories/42/issues', []);
      await passes(agent, 'GET /repos/ACME/App/contents/x');
      await passes(agent, 'PATCH /repos/tools/x', { description: 'x' });
    });

    test('git requests to a repository that is not listed are refused', async () => {
      const agent = await limited();
      await refused(agent, 'GET /git/acme/other.git/info/refs?service=git-upload-pack', ['acme/other']);
      await refused(agent, 'POST /git/evil/app/git-receive-pack', ['evil/app']);
      await refused(agent, 'GET /git/acme/app.git.git/info/refs?service=git-upload-pack', ['acme/app.git']);
      await passes(agent, 'GET /git/ACME/App.git/info/refs?service=git-upload-pack');
    });

    test('fork, transfer, import, gists, search and GraphQL are refused', async () => {
      const agent = await limited();
      await refused(agent, 'POST /repos/acme/app/forks', []);
      await refused(agent, 'POST /repos/acme/app/transfer', [], { new_owner: 'evil' });
      await refused(agent, 'PUT /repos/acme/app/import', [], { vcs_url: 'https://evil.example' });
      await refused(agent, 'GET /gists', []);
      await refused(agent, 'POST /gists', [], { files: {} });
      await refused(agent, 'GET /search/code?q=repo:acme/app', []);
      await refused(agent, 'POST /graphql', [], { query: '{ viewer { login } }' });
    });

    test('the four exempt reads pass', async () => {
      const agent = await limited();
      for (const line of ['GET /user/repos?page=2', 'GET /orgs/acme/repos', 'GET /user', 'GET /rate_limit'])
        await passes(agent, line);
      await refused(agent, 'GET /users/acme/repos', []);
    });

    test('a repository can be created only with the switch, and only under a listed owner', async () => {
      const [without, withSwitch] = [await limited(), await limited({ ...LIST, allow_repo_creation: true })];
      await refused(without, 'POST /orgs/tools/repos', ['tools/new'], { name: 'new' });
      await refused(withSwitch, 'POST /orgs/evil/repos', ['evil/new'], { name: 'new' });
      await refused(withSwitch, 'POST /user/repos', [], { name: 'new' });
      await passes(withSwitch, 'POST /orgs/ACME/repos', { name: 'new' });
    });

    test('the refusal is never an approval request', async () => {
      const agent = await limited(LIST, [{ effect: 'require_approval' }]);
      await refused(agent, 'GET /repos/evil/app', ['evil/app']);
      expect((await actThrough(entryPoint, agent, request('GET /repos/acme/app'))).status).toBe(202);
    });

    test('GT-19 renaming and publishing depend on the policy only, and a renamed repository is no longer listed', async () => {
      const unwary = await limited();
      await passes(unwary, 'PATCH /repos/acme/app', { name: 'taken' });
      await passes(unwary, 'PATCH /repos/acme/app', { visibility: 'public' });
      await refused(unwary, 'GET /repos/acme/taken', ['acme/taken']);

      const changes = ['name', 'visibility', 'private'].map((member) => `has(request.body.${member})`).join(' || ');
      const wary = await limited(LIST, [
        { effect: 'deny', methods: ['PATCH'], endpoints: ['/repos/*/*'], when: changes },
        { effect: 'allow' },
      ]);
      for (const data of [{ name: 'x' }, { visibility: 'public' }, { private: false }, { description: 'x', name: 'x' }])
        await deniedThrough(entryPoint, world, wary, request('PATCH /repos/acme/app', data), 'denied_by_policy');
      await passes(wary, 'PATCH /repos/acme/app', { description: 'x' });
    });

    test('a renamed repository is refused until it is listed: its redirect is not followed', async () => {
      const agent = await limited();
      world.upstream.answer = (_request, response) => {
        response.writeHead(301, { location: `${world.upstream.url}/v1/repositories/42` });
        response.end();
      };
      const before = world.upstream.seen.length;
      const answer = await actThrough(entryPoint, agent, request('GET /repos/acme/app')).finally(() => {
        world.upstream.answer = undefined;
      });
      expect([answer.status, answer.body._meta.upstream_status]).toEqual([200, 301]);
      expect(world.upstream.seen.slice(before).map(({ target }) => target)).toEqual(['/v1/repos/acme/app']);
      await refused(agent, 'GET /repositories/42', []);
    });
  });

  test('a scope whose every call is refused is not in the permissions, and requesting it explains why', async () => {
    const permissions = async (agent: TestAgent) => {
      const { body } = await agent.get('/v1/agent/permissions');
      return body.data.platforms.map(({ scopes }: { scopes: string[] }) => scopes);
    };
    const body = JSON.stringify({ platform: 'codehost', scope: 'codehost:stars' });
    const headers = { 'content-type': 'application/json' };
    const ask = (agent: TestAgent) => agent.request('POST', '/v1/access-request', { body, headers });
    const agent = await limited();
    expect(await permissions(agent)).toEqual([['codehost:any']]);
    const answer = await ask(agent);
    expect([answer.status, answer.body.error]).toEqual([403, 'scope_not_grantable']);
    expect(answer.body.detail).toContain('the limits of the grant (repos) refuse every call under "codehost:stars"');

    const other = await limited({});
    expect(await permissions(other)).toEqual([['codehost:any', 'codehost:stars']]);
    expect(await ask(other)).toMatchObject({ status: 409, body: { error: 'conflict' } });
  });
});
