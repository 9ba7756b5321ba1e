import { beforeAll, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { givenWorld, shared } from '../world/fixtures.ts';

const TREES = { platform: 'forge', endpoint: '/trees', method: 'POST' };
const write = (path: string) => ({ data: { tree: [{ path, content: 'x' }] } });

let agent: TestAgent;
const world = givenWorld();
const organisation = shared(() => world.organisation());
beforeAll(async () => {
  await organisation.platform({
    id: 'forge',
    manifest: {
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
    },
  });
  const scopeList = ['forge:contents.write', 'forge:workflows.write', 'forge:owners.write'];
  const policy = await organisation.policy([{ effect: 'allow' }]);
  agent = await organisation.agent({ policy, grants: { forge: { scopeList } } });
});

test('a body that needs another scope is refused under the scope of its operation, and the answer names the needed scope', async () => {
  const refused = await agent.act({ ...TREES, scope: 'forge:contents.write', ...write('.ci/release.yml') });
  expect(refused.status).toBe(403);
  expect(refused.body).toMatchObject({ reason: 'endpoint_scope_mismatch' });
  expect(refused.body.detail).toContain('it needs forge:workflows.write');
  expect(world.upstream.seen).toEqual([]);
  const sent = await agent.act({ ...TREES, scope: 'forge:workflows.write', ...write('.ci/release.yml') });
  expect(sent.status).toBe(200);
});

test('any other body needs the scope of its operation', async () => {
  expect((await agent.act({ ...TREES, scope: 'forge:contents.write', ...write('docs/ci.md') })).status).toBe(200);
  const refused = await agent.act({ ...TREES, scope: 'forge:workflows.write', ...write('docs/ci.md') });
  expect(refused.body).toMatchObject({ reason: 'endpoint_scope_mismatch' });
});

test('a body that needs two other scopes is refused under every scope, because a call has only one', async () => {
  const data = { tree: [...write('.ci/release.yml').data.tree, ...write('OWNERS').data.tree] };
  for (const scope of ['forge:contents.write', 'forge:workflows.write', 'forge:owners.write']) {
    const refused = await agent.act({ ...TREES, scope, data });
    expect([refused.status, refused.body.reason], scope).toEqual([403, 'endpoint_scope_mismatch']);
  }
  expect(world.upstream.seen).toEqual([]);
  // Counter-example: a body that needs one of them is sent.
  expect((await agent.act({ ...TREES, scope: 'forge:owners.write', ...write('OWNERS') })).status).toBe(200);
});

test('a rule about the operation makes the scope of its content conditional in permissions', async () => {
  const policy = await organisation.policy([{ effect: 'allow' }, { effect: 'deny', endpoints: ['/trees'] }]);
  const grants = { forge: { scopeList: ['forge:workflows.write'] } };
  const denied = await organisation.agent({ policy, grants });
  const answer = await denied.get('/v1/agent/permissions');
  expect(answer.body.data.platforms[0].conditionalScopes).toEqual(['forge:workflows.write']);
});
