import { describe, expect, test } from 'vitest';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { manifestOf } from '../platforms/classified.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus } from '../world/agent.ts';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { givenWorld, shared } from '../world/world.ts';

/** How a manifest determines the requests that a platform receives. */
describe('POST /v1/actions by the manifest of a platform', () => {
  const world = givenWorld();
  const organisation = shared(() => world.organisation());

  /** An agent that may do everything on a platform of its own. */
  async function agentOn(id: string, manifest: Record<string, unknown>, terms = {}) {
    await organisation.platform({ id, manifest });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const scopeList = Object.keys((manifest.scopes as object | undefined) ?? { 'demo:write': [] });
    return await organisation.agent({ policy, grants: { [id]: { scopeList, ...terms } } });
  }

  test.each([
    ['/graphql', '/graphql'],
    ['/graphql/', '/graphql/'],
    ['/api/v2/graphql', '/api/v2/graphql'],
    ['', '/'],
    ['/', '/'],
  ])('a GraphQL call is sent to the base URL, which ends in %j', async (path, target) => {
    const id = `graph-${path.replaceAll(/\W/g, '_')}`;
    const scopes = { 'graph:read': ['query *'] };
    const agent = await agentOn(id, { kind: 'graphql', base_url: `${world.upstream.url}${path}`, scopes });
    const call = { platform: id, endpoint: '/', method: 'POST', scope: 'graph:read', data: { query: '{ me { id } }' } };
    const answer = await expectStatus(200, agent.act(call));
    expect(world.upstream.seen).toMatchObject([{ method: 'POST', target, body: '{"query":"{ me { id } }"}' }]);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row.path).toBe('/');
    // No other path exists: neither the base path repeated nor anything below it.
    for (const endpoint of ['/graphql', '/x', '/?a=1']) {
      const other = await withoutCalls(world, () => agent.act({ ...call, endpoint }));
      expect([400, 403], other.text).toContain(other.status);
    }
  });

  test('an agent can choose the media type of GitHub’s answers, but not the API version', async () => {
    const { headers, default_headers } = manifestOf('github');
    const agent = await agentOn('forge', { headers, default_headers });
    const call = { platform: 'forge', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    await expectStatus(200, agent.act(call));
    const chosen = { Accept: 'application/vnd.github.diff', 'X-GitHub-Api-Version': '2030-01-01' };
    const answer = await agent.act({ ...call, headers: chosen });
    expect(answer.body._meta.dropped_headers).toEqual(['x-github-api-version']);
    const [first, second] = world.upstream.seen.map((seen) => seen.headers);
    expect(first).toMatchObject({ accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' });
    expect(second).toMatchObject({ accept: 'application/vnd.github.diff', 'x-github-api-version': '2022-11-28' });
  });

  test('a default header is overridden only by exactly its name, and is sent once', async () => {
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

  test('HD-02 forbidden headers are never sent, and are named in the answer', async () => {
    const agent = await agentOn('model', { forbidden_headers: ['openai-organization', 'openai-project'] });
    const call = { platform: 'model', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const headers = { 'OpenAI-Organization': 'org_1', 'OPENAI-PROJECT': 'p', 'OpenAI-Beta': 'x' };
    const answer = await expectStatus(200, agent.act({ ...call, headers }));
    expect(answer.body._meta.dropped_headers).toEqual(['openai-organization', 'openai-project']);
    const [seen] = world.upstream.seen;
    expect(Object.keys(seen!.headers).filter((name) => name.startsWith('openai-'))).toEqual(['openai-beta']);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(JSON.parse(row.flags!)).toEqual({ dropped_headers: ['openai-organization', 'openai-project'] });
  });

  test.each<[BuiltinName, string]>([
    ['stripe', 'Stripe-Account'],
    ['stripe', 'STRIPE_CONTEXT'],
    ['openai', 'OpenAI-Organization'],
    ['openai', 'OPENAI_PROJECT'],
    ['kubernetes', 'Impersonate-User'],
    ['kubernetes', 'impersonate-extra-scopes'],
  ])(
    'on %s, a call with %s is refused through /v1/actions and /proxy: without the header it would act for another account',
    async (name, header) => {
      const { refused_headers } = manifestOf(name);
      const id = `${name}-${header.toLowerCase().replaceAll('_', '-')}`.slice(0, 30);
      const agent = await agentOn(id, { refused_headers });
      const call = {
        platform: id,
        endpoint: '/items',
        method: 'POST',
        scope: 'demo:write',
        headers: { [header]: 'acct_1' },
      };
      const answer = await withoutCalls(world, () => agent.act(call));
      expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_headers']);
      const raw = rawClient(() => agent);
      const unmodified = await withoutCalls(world, () =>
        raw('POST', `/proxy/${id}-main/items`, {
          headers: { [header]: 'acct_1', 'content-type': 'application/json' },
          body: '{}',
        }),
      );
      expect([unmodified.status, unmodified.text]).toEqual([400, expect.stringContaining(header.toLowerCase())]);
      const without = await raw('POST', `/proxy/${id}-main/items`, {
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      expect(without.status, without.text).toBe(200);
    },
  );

  test.each(['POST', 'PUT', 'PATCH'])(
    'a partial %s is refused through /v1/actions and /proxy: without Content-Range it would replace the whole',
    async (method) => {
      const manifest = { scopes: { 'demo:write': ['POST /**', 'PUT /**', 'PATCH /**'], 'demo:read': ['GET /**'] } };
      const id = `parts-${method.toLowerCase()}`;
      const agent = await agentOn(id, manifest);
      const raw = rawClient(() => agent);
      const call = { platform: id, endpoint: '/items/1', method, scope: 'demo:write', data: { a: 1 } };
      for (const name of ['Content-Range', 'CONTENT_RANGE']) {
        const headers = { [name]: 'bytes 0-6/100' };
        const answer = await withoutCalls(world, () => agent.act({ ...call, headers }));
        expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_headers']);
        const unmodified = await withoutCalls(world, () =>
          raw(method, `/proxy/${id}-main/items/1`, { headers, body: '{"a":1}' }),
        );
        expect([unmodified.status, unmodified.text]).toEqual([400, expect.stringContaining(name.toLowerCase())]);
      }
      // On a read the header is dropped.
      const headers = { 'Content-Range': 'bytes 0-6/100' };
      const read = await agent.act({ platform: id, endpoint: '/items/1', method: 'GET', scope: 'demo:read', headers });
      expect([read.status, read.body._meta.dropped_headers], read.text).toEqual([200, ['content-range']]);
      expect((await raw('GET', `/proxy/${id}-main/items/1`, { headers })).status).toBe(200);
      for (const { headers: sent } of world.upstream.seen) expect(sent).not.toHaveProperty('content-range');
    },
  );

  test('a partial write is sent with Content-Range when the manifest names it', async () => {
    const agent = await agentOn('resumable', {
      client_headers: ['content-range', 'x-upload-*'],
      scopes: { 'demo:write': ['PUT /**'] },
    });
    const headers = { 'Content-Range': 'bytes 0-6/100', 'Content-Language': 'de' };
    const call = { platform: 'resumable', endpoint: '/items/1', method: 'PUT', scope: 'demo:write', data: { a: 1 } };
    const answer = await agent.act({ ...call, headers });
    expect([answer.status, answer.body._meta.dropped_headers], answer.text).toEqual([200, ['content-language']]);
    const unmodified = await rawClient(() => agent)('PUT', '/proxy/resumable-main/items/1', {
      headers,
      body: '{"a":1}',
    });
    expect(unmodified.status, unmodified.text).toBe(200);
    for (const { headers: sent, body } of world.upstream.seen)
      expect([sent['content-range'], sent['content-language'], body]).toEqual(['bytes 0-6/100', undefined, '{"a":1}']);
    expect(world.upstream.seen).toHaveLength(2);
    const folded = await withoutCalls(world, () => agent.act({ ...call, headers: { content_range: 'bytes 0-6/100' } }));
    expect([folded.status, folded.body.error]).toEqual([400, 'invalid_headers']);
  });

  test('recipients by id, and optional recipients', async () => {
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
