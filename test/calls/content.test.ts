import type { ServerResponse } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import type { RuleSource } from '../../broker/policy/rules/rule.ts';
import { pause } from '../../broker/runtime/waits.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { withoutCalls } from '../world/evidence.ts';
import { givenWorld, shared } from '../world/world.ts';

const TREES = { platform: 'forge', endpoint: '/trees', method: 'POST' };
const SCOPE_LIST = ['forge:contents.write', 'forge:workflows.write', 'forge:owners.write'];
const FORGE = {
  scopes: {
    'forge:contents.write': ['POST /trees'],
    'forge:workflows.write': ['POST /merges'],
    'forge:owners.write': ['POST /owners'],
  },
  content_scopes: {
    'POST /trees': [
      { pointer: '/tree/*/path', paths: ['/.ci/**'], scope: 'forge:workflows.write' },
      { pointer: '/tree/*/path', paths: ['/OWNERS'], scope: 'forge:owners.write' },
    ],
  },
};
const write = (path: string) => ({ data: { tree: [{ path, content: 'x' }] } });

let agent: TestAgent;
const world = givenWorld();
const organisation = shared(() => world.organisation());
beforeAll(async () => {
  await organisation.platform({
    id: 'forge',
    manifest: FORGE,
  });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  agent = await organisation.agent({ policy, grants: { forge: { scopeList: SCOPE_LIST } } });
});

test('a body that needs another scope is refused under the scope of its operation, and the answer names the needed scope', async () => {
  const refused = await agent.act({ ...TREES, scope: 'forge:contents.write', ...write('.ci/release.yml') });
  expect(refused.status).toBe(403);
  expect(refused.body).toMatchObject({ reason: 'endpoint_scope_mismatch' });
  expect(refused.body.detail).toContain('it needs forge:workflows.write');
  expect(world.upstream.seen).toEqual([]);
  await expectStatus(200, agent.act({ ...TREES, scope: 'forge:workflows.write', ...write('.ci/release.yml') }));
});

test('any other body needs the scope of its operation', async () => {
  expect((await agent.act({ ...TREES, scope: 'forge:contents.write', ...write('docs/ci.md') })).status).toBe(200);
  const refused = await agent.act({ ...TREES, scope: 'forge:workflows.write', ...write('docs/ci.md') });
  expect(refused.body).toMatchObject({ reason: 'endpoint_scope_mismatch' });
});

describe('a body that needs several scopes', () => {
  const BOTH = { tree: [...write('.ci/release.yml').data.tree, ...write('OWNERS').data.tree] };

  test('is sent under each scope of its content, and under no other', async () => {
    for (const scope of ['forge:workflows.write', 'forge:owners.write'])
      expect((await agent.act({ ...TREES, scope, data: BOTH })).status, scope).toBe(200);
    const refused = await agent.act({ ...TREES, scope: 'forge:contents.write', data: BOTH });
    expect([refused.status, refused.body.reason]).toEqual([403, 'endpoint_scope_mismatch']);
  });

  test.each([
    ['the scope of its operation', ['forge:workflows.write', 'forge:owners.write'], 'forge:contents.write'],
    ['a scope of its content', ['forge:workflows.write', 'forge:contents.write'], 'forge:owners.write'],
  ])('is refused without %s', async (_name, scopeList, lacking) => {
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const limited = await organisation.agent({ policy, grants: { forge: { scopeList } } });
    const refused = await withoutCalls(world, () =>
      limited.act({ ...TREES, scope: 'forge:workflows.write', data: BOTH }),
    );
    expect([refused.status, refused.body.reason]).toEqual([403, 'endpoint_scope_mismatch']);
    expect(refused.body.detail).toBe(
      `the call needs ${lacking} in addition to forge:workflows.write, which the grant does not include.`,
    );
  });

  test.each<[string, RuleSource[], number, string]>([
    [
      'denies one of them',
      [{ effect: 'allow' }, { effect: 'deny', scopes: ['forge:owners.write'] }],
      403,
      'denied_by_policy',
    ],
    [
      'holds one of them',
      [{ effect: 'allow' }, { effect: 'require_approval', scopes: ['forge:contents.write'] }],
      202,
      'approval_required_by_policy',
    ],
    ['allows only one of them', [{ effect: 'allow', scopes: ['forge:workflows.write'] }], 403, 'denied_by_policy'],
  ])('is decided for each scope: a policy that %s', async (_name, rules, status, reason) => {
    const grants = { forge: { scopeList: ['forge:contents.write', 'forge:workflows.write', 'forge:owners.write'] } };
    const ruled = await organisation.agent({ policy: await organisation.policy(rules), grants });
    const call = { ...TREES, scope: 'forge:workflows.write', data: BOTH };
    const decided = await withoutCalls(world, () => ruled.act(call));
    expect(decided.status, decided.text).toBe(status);
    const simulated = await organisation.ask('POST', '/owner/simulate', { agent_id: ruled.agentId, ...call });
    expect(simulated.body.reason, simulated.text).toBe(reason);
  });

  test('needs a consent that covers each of them, and asks for the one that is missing', async () => {
    await organisation.platform({
      id: 'consenting',
      manifest: { ...FORGE, needs: { 'forge:owners.write': ['owners'], 'forge:workflows.write': ['flows'] } },
      secret: null,
    });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const call = { ...TREES, platform: 'consenting', scope: 'forge:workflows.write', data: BOTH };
    const through = async (upstreamScopes: string[]) => {
      const connection_id = await organisation.connection('consenting', { isDefault: false, upstreamScopes });
      const grants = { consenting: { scopeList: SCOPE_LIST, connection_id } };
      return await (await organisation.agent({ policy, grants })).act(call);
    };
    const less = await withoutCalls(world, () => through(['flows']));
    expect([less.status, less.body.error, less.body.scope], less.text).toEqual([
      ...[409, 'needs_consent', 'forge:owners.write'],
    ]);
    const { access_requests: requests } = (await organisation.ask('GET', '/owner/access-requests')).body;
    expect(requests.map(({ scope }: { scope: string }) => scope)).toEqual(['forge:owners.write']);
    expect((await through(['flows', 'owners'])).status).toBe(200);
  });

  test('is cut when one of them is revoked while it runs', async () => {
    const policy = await organisation.policy([{ effect: 'allow' }]);
    for (const kept of [SCOPE_LIST, SCOPE_LIST.filter((one) => one !== 'forge:owners.write')]) {
      const running = await organisation.agent({ policy, grants: { forge: { scopeList: SCOPE_LIST } } });
      const responses: ServerResponse[] = [];
      world.upstream.answer = (request, response) => {
        request.resume();
        responses.push(response);
      };
      const asked = running.act({ ...TREES, scope: 'forge:workflows.write', data: BOTH });
      await expect.poll(() => responses.length).toBe(1);
      const narrowed = await organisation.ask('POST', `/owner/agents/${running.agentId}/grants/forge`, {
        scopes: kept,
      });
      expect(narrowed.status, narrowed.text).toBe(200);
      // The watch looks once a second at calls that are half a second old.
      await pause(2_500);
      responses[0]!.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      const answer = await asked;
      expect([answer.status, answer.body.reason ?? null], answer.text).toEqual(
        kept === SCOPE_LIST ? [200, null] : [403, 'scope_not_granted'],
      );
      world.upstream.answer = undefined;
    }
  });

  test('counts towards the limits of each scope, once for each rule', async () => {
    const limit = { most: 1, per: 'day' } as const;
    const policy = await organisation.policy([
      { effect: 'allow' },
      { name: 'any', effect: 'deny', scopes: ['forge:*'], limit: { ...limit, most: 2 } },
      { name: 'contents', effect: 'deny', scopes: ['forge:contents.write'], limit },
    ]);
    const grants = { forge: { scopeList: ['forge:contents.write', 'forge:workflows.write', 'forge:owners.write'] } };
    const counted = await organisation.agent({ policy, grants });
    const call = { ...TREES, scope: 'forge:workflows.write', data: BOTH };
    expect((await counted.act(call)).status).toBe(200);
    const second = await counted.act(call);
    expect([second.status, second.body.limit]).toMatchObject([403, { rule: 'contents', used: 1 }]);
    const merge = { platform: 'forge', endpoint: '/merges', method: 'POST', scope: 'forge:workflows.write' };
    expect((await counted.act(merge)).status).toBe(200);
  });
});

test('a rule about the operation makes the scope of its content conditional in permissions', async () => {
  const policy = await organisation.policy([{ effect: 'allow' }, { effect: 'deny', endpoints: ['/trees'] }]);
  const grants = { forge: { scopeList: ['forge:workflows.write'] } };
  const denied = await organisation.agent({ policy, grants });
  const answer = await denied.get('/v1/agent/permissions');
  expect(answer.body.data.platforms[0].conditionalScopes).toEqual(['forge:workflows.write']);
});
