import { describe, expect, test } from 'vitest';
import { manifestOf } from '../platforms/classified.ts';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { givenWorld, shared } from '../world/given.ts';

/** What a manifest says about how a platform is called, seen from the platform. */
describe('POST /v1/actions by the manifest of a platform', () => {
  const world = givenWorld();
  const organisation = shared(() => world.organisation());

  /** An agent that may do anything on a platform of its own. */
  async function agentOn(id: string, manifest: Record<string, unknown>, terms = {}, effect = 'allow') {
    await organisation.platform({ id, manifest });
    const policy = await organisation.policy([{ effect }]);
    const scopeList = Object.keys((manifest.scopes as object | undefined) ?? { 'demo:write': [] });
    return await organisation.agent({ policy, grants: { [id]: { scopeList, ...terms } } });
  }

  test.each([
    ['/graphql', '/graphql'],
    ['/graphql/', '/graphql/'],
    ['/api/v2/graphql', '/api/v2/graphql'],
    ['', '/'],
    ['/', '/'],
  ])('a GraphQL call goes to the address of the platform, which ends in %j', async (path, target) => {
    const id = `graph-${path.replaceAll(/\W/g, '_')}`;
    const scopes = { 'graph:read': ['query *'] };
    const agent = await agentOn(id, { kind: 'graphql', base_url: `${world.upstream.url}${path}`, scopes });
    const call = { platform: id, endpoint: '/', method: 'POST', scope: 'graph:read', data: { query: '{ me { id } }' } };
    const answer = await agent.act(call);
    expect(answer.status, answer.text).toBe(200);
    expect(world.upstream.seen).toMatchObject([{ method: 'POST', target, body: '{"query":"{ me { id } }"}' }]);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row.path).toBe('/');
    // Nothing else is there: not the path of the address once more, nor anything below it.
    for (const endpoint of ['/graphql', '/x', '/?a=1']) {
      const other = await withoutCalls(world, () => agent.act({ ...call, endpoint }));
      expect([400, 403], other.text).toContain(other.status);
    }
  });

  test('an agent chooses the form of GitHub’s answers, and not the version of its API', async () => {
    const { headers, default_headers } = manifestOf('github');
    const agent = await agentOn('forge', { headers, default_headers });
    const call = { platform: 'forge', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const plain = await agent.act(call);
    expect(plain.status, plain.text).toBe(200);
    const chosen = { Accept: 'application/vnd.github.diff', 'X-GitHub-Api-Version': '2030-01-01' };
    const answer = await agent.act({ ...call, headers: chosen });
    expect(answer.body._meta.dropped_headers).toEqual(['x-github-api-version']);
    const [first, second] = world.upstream.seen.map((seen) => seen.headers);
    expect(first).toMatchObject({ accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' });
    expect(second).toMatchObject({ accept: 'application/vnd.github.diff', 'x-github-api-version': '2022-11-28' });
  });

  test('a default header is overridden by its own name alone, and is there once', async () => {
    const agent = await agentOn('team', { default_headers: { X_Team: 'a', 'X-Method_Override': 'GET' } });
    const call = { platform: 'team', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const named = await agent.act({ ...call, headers: { x_team: 'b' } });
    expect(named.body._meta).not.toHaveProperty('dropped_headers');
    expect(world.upstream.seen.at(-1)!.headers).toMatchObject({ x_team: 'b' });
    const headers = { 'X-Team': 'c', 'x-method_override': 'DELETE' };
    const other = await agent.act({ ...call, headers });
    expect(other.body._meta.dropped_headers).toEqual(['x-method_override', 'x-team']);
    expect(world.upstream.seen.at(-1)!.headers).toMatchObject({ x_team: 'a', 'x-method_override': 'GET' });
    expect(world.upstream.seen.at(-1)!.headers).not.toHaveProperty('x-team');
  });

  test('HD-02 headers that reach another account never arrive, and are named', async () => {
    const { forbidden_headers } = manifestOf('stripe');
    const agent = await agentOn('pay', { forbidden_headers });
    const call = { platform: 'pay', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const headers = { 'Stripe-Account': 'acct_1', 'STRIPE-CONTEXT': 'acct_1/acct_2', 'Stripe-Version': '2026-01-01' };
    const answer = await agent.act({ ...call, headers });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body._meta.dropped_headers).toEqual(['stripe-account', 'stripe-context']);
    const [seen] = world.upstream.seen;
    expect(Object.keys(seen!.headers).filter((name) => name.startsWith('stripe-'))).toEqual(['stripe-version']);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(JSON.parse(row.flags!)).toEqual({ dropped_headers: ['stripe-account', 'stripe-context'] });
  });

  test('recipients by id, and those that a call need not name', async () => {
    const recipients = {
      'POST /items': [
        { pointer: '/channel', format: 'id' },
        { pointer: '/cc/*', optional: true },
      ],
      'PATCH /items/*': [{ pointer: '/email', optional: true }],
    };
    const constraints = JSON.stringify({ recipients: ['C024BE91L', '@acme.example'] });
    const agent = await agentOn('chat', { recipients }, { constraints });
    const post = { platform: 'chat', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const patch = { ...post, endpoint: '/items/1', method: 'PATCH' };
    const refused = async (call: object, violating: string[]) => {
      const answer = await withoutCalls(world, () => agent.act({ ...call }));
      expect([answer.status, answer.body.reason], answer.text).toEqual([403, 'recipient_not_allowed']);
      expect(answer.body.violating).toEqual(violating);
    };
    await refused({ ...post, data: { channel: 'c024be91l' } }, ['c024be91l']);
    await refused({ ...post, data: { channel: 'C024BE91L', cc: ['x@evil.example'] } }, ['x@evil.example']);
    await refused({ ...post, data: { cc: ['ann@acme.example'] } }, []);
    await refused({ ...patch, data: { email: 7 } }, ['7']);
    for (const call of [
      { ...post, data: { channel: 'C024BE91L' } },
      { ...post, data: { channel: 'C024BE91L', cc: ['ann@acme.example'] } },
      { ...patch, data: { title: 'x' } },
    ])
      expect((await agent.act(call)).status).toBe(200);
  });
});
