/** Entitlements that the operator has switched off: new use is refused with an explanation, and existing permissions get no wider. */
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { govern } from '../world/docs-platform.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const SCOPES = ['codehost:contents.read'];
const READ = { platform: 'codehost', method: 'GET', scope: 'codehost:contents.read' };
const APP = '/repos/acme/app/contents/README.md';
const OTHER = '/repos/acme/other/contents/README.md';

describe.each(ONE_STORE)(`entitlements that are switched off on %s${postgresNote}`, (store) => {
  let limited: TestAgent;
  let free: TestAgent;
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    expect((await apply(file())).status).toBe(200);
    limited = await agent({ repos: ['acme/app', 'acme/web'] });
    free = await agent({});
    world.environment.AGENT_BROKER_ENTITLEMENTS_OFF = `repository_constraints@${organisation.id},egress@${organisation.id}`;
    await world.restart();
  });

  const file = (more: object = {}) => ({
    platforms: { codehost: { use: 'github', base_url: world.upstream.url } },
    connections: { host: { platform: 'codehost', secret: { env: 'HOST' } } },
    ...more,
  });
  const apply = (document: object, to = organisation) => govern(to, document, { 'env:HOST': 'CANARY-host-0123456789' });
  const agent = (constraints: object, of = organisation) =>
    of.agent({
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: SCOPES, constraints: JSON.stringify(constraints) } },
    });
  const change = (of: TestAgent, terms: object, by = organisation) =>
    by.ask('POST', `/owner/agents/${of.id}/grants/codehost`, terms);
  const child = (of: TestAgent, constraints: object | null) =>
    of.post('/v1/agents/children', { grants: [{ platform: 'codehost', scopes: SCOPES, constraints }] });
  const reach = async (of: TestAgent, endpoint: string) => {
    const { status, body } = await of.act({ ...READ, endpoint });
    return body.reason ?? status;
  };

  test('existing repository limits stay in force, and may be narrowed and removed', async () => {
    expect([await reach(limited, APP), await reach(limited, OTHER)]).toEqual([200, 'repo_not_allowed']);
    expect((await change(limited, { require_approval: false })).body.grant.repos).toEqual(['acme/app', 'acme/web']);
    expect((await change(limited, { repos: ['acme/app'] })).body.grant.repos).toEqual(['acme/app']);
    expect([await reach(limited, APP), await reach(limited, OTHER)]).toEqual([200, 'repo_not_allowed']);
    const other = await agent({ repos: ['acme/app'] });
    expect((await change(other, { repos: null })).status).toBe(200);
    expectEnvelope(await change(other, { repos: ['acme/app'] }), 402, 'not_on_plan');
  });

  test.each<[string, object]>([
    ['a list', { repos: ['acme/app'] }],
    ['an empty list', { repos: [] }],
    ['creating repositories', { allow_repo_creation: true }],
  ])(
    'POST /owner/agents/{id}/grants/{platform}: %s is refused, and the grant stays unchanged',
    async (_what, terms) => {
      const answer = await change(free, terms);
      expectEnvelope(answer, 402, 'not_on_plan');
      expect(answer.body.detail).toContain('AGENT_BROKER_ENTITLEMENTS_OFF');
      expect(await reach(free, OTHER)).toBe(200);
      const made = await organisation.agent({ rules: ALLOW_ALL, grants: {} });
      expectEnvelope(await change(made, { scopes: SCOPES, ...terms }), 402, 'not_on_plan');
      expect(await reach(made, APP)).toBe('no_permission_record');
    },
  );

  test('a governance file with new use is not applied at all; existing limits may be part of it', async () => {
    const agents = (repos?: string[]) => ({
      owners: [{ email: organisation.owner.email, role: 'admin' }],
      agents: {
        coder: {
          owner: organisation.owner.email,
          policy: 'all',
          grants: { codehost: { scopes: SCOPES, ...(repos && { repos }) } },
        },
      },
      policies: { all: { rules: ALLOW_ALL } },
    });
    const whole = { text: JSON.stringify(file(agents(['acme/app']))), values: { 'env:HOST': 'x' } };
    for (const step of ['plan', 'apply']) {
      const refused = await organisation.ask('POST', `/owner/governance/${step}`, whole);
      expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_governance']);
      expect(refused.text).toContain('agents.coder.grants.codehost.repos');
      expect(refused.text).toContain('AGENT_BROKER_ENTITLEMENTS_OFF');
    }
    expect((await organisation.ask('GET', '/owner/agents')).text).not.toContain('coder');

    // The limit was granted while the entitlement was on: the same file can be applied, and a narrower list.
    const entitled = await world.organisation();
    const both = (repos?: string[]) => {
      const document = agents(repos);
      document.owners[0]!.email = entitled.owner.email;
      document.agents.coder.owner = entitled.owner.email;
      return file(document);
    };
    await expectStatus(200, apply(both(['acme/app', 'acme/web']), entitled));
    await switchOff('repository_constraints');
    try {
      expect((await apply(both(['acme/app', 'acme/web']), entitled)).body.changes).toEqual([]);
      expect((await apply(both(['acme/app']), entitled)).body.changes).toHaveLength(1);
    } finally {
      await switchOff(`repository_constraints@${organisation.id},egress@${organisation.id}`);
    }
  });

  const switchOff = async (what: string) => {
    world.environment.AGENT_BROKER_ENTITLEMENTS_OFF = what;
    await world.restart();
  };

  test('a child: a first limit is refused, not dropped; a child has its parent’s, and may have narrower ones', async () => {
    const answer = await child(free, { repos: ['acme/app'] });
    expectEnvelope(answer, 402, 'not_on_plan');
    expect(answer.body.detail).toContain('grants[0].constraints');
    expect((await child(free, null)).status).toBe(201);
    const parent = await agent({ repos: ['acme/app', 'acme/web'] });
    expect((await child(parent, null)).body.granted[0].constraints).toEqual({ repos: ['acme/app', 'acme/web'] });
    expect((await child(parent, { repos: ['acme/app'] })).body.granted[0].constraints).toEqual({ repos: ['acme/app'] });
    expect((await child(parent, { repos: ['acme/other'] })).body.error).toBe('child_constraints_looser_than_parent');
  });

  test('egress: permissions list no hosts; another organisation still gets them', async () => {
    const permissions = async (of: TestAgent) => (await of.get('/v1/agent/permissions')).body.data;
    expect(await permissions(free)).not.toHaveProperty('egress');
    const other = await world.organisation();
    expect((await apply(file(), other)).status).toBe(200);
    const theirs = await agent({}, other);
    expect((await permissions(theirs)).egress).toEqual({ hosts: [world.upstream.address] });
    expect((await change(theirs, { repos: ['acme/app'] }, other)).status).toBe(200);
  });

  test('egress: the ETag of permissions changes when it is switched off, and on again', async () => {
    const entitled = await world.organisation();
    expect((await apply(file(), entitled)).status).toBe(200);
    const reader = await agent({}, entitled);
    const off = world.environment.AGENT_BROKER_ENTITLEMENTS_OFF!;
    const read = async (etag = '') => await reader.get('/v1/agent/permissions', { 'if-none-match': etag });
    const before = await read();
    expect(before.body.data).toHaveProperty('egress');
    try {
      await switchOff(`egress@${entitled.id}`);
      const without = await expectStatus(200, read(before.headers.get('etag')!));
      expect(without.body.data).not.toHaveProperty('egress');
      await switchOff(off);
      expect((await read(without.headers.get('etag')!)).body.data).toEqual(before.body.data);
    } finally {
      await switchOff(off);
    }
  });
});
