/** Children of an agent whose key or workload is replaced, or removed by a governance file: whoever had the former credential may have made them. */
import { describe, expect, test } from 'vitest';
import { issueChild } from '../../broker/admin/agents/children.ts';
import { ALL_PLATFORMS } from '../../broker/policy/facts.ts';
import { findWorkloadOf } from '../../broker/store/workloads.ts';
import { expectStatus, jsonPost, makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { DEMO_RULES, fresh, givenWorld, WRITE } from '../world/world.ts';

describe.each(STORES)(`children of a former credential on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const keys = makeKeyPair();

  const bind = async ({ id }: TestAgent) => {
    const made = await organisation.ask('POST', `/owner/agents/${id}/bootstrap-token`, { rotate: true });
    const bound = await send(
      `${world.running.baseUrl}/v1/agents/bind`,
      jsonPost({ bootstrap_token: made.body.bootstrap_token, public_key_pem: keys.publicPem }),
    );
    expect(bound.status, bound.text).toBe(200);
  };
  const apply = async (text: string) => {
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text, values: {} }));
  };
  const issuer = 'https://cluster.example';
  const trust = async ({ id }: TestAgent, subject: string) => {
    const meant = { issuer, subject, jwks_uri: `${issuer}/keys` };
    expect((await organisation.ask('POST', `/owner/agents/${id}/workload`, meant)).status).toBe(200);
  };
  const workload = async (agent: TestAgent) => {
    await trust(agent, 'triage');
    expect((await organisation.ask('DELETE', `/owner/agents/${agent.id}/workload`)).status).toBe(200);
  };
  const pem = () => keys.publicPem.trim().replaceAll('\n', '\\n');
  const withKey = () => `public_key: { pem: "${pem()}\\n" }`;
  const trusted = (subject: string) =>
    `agents: { triage: { workload: { issuer: "${issuer}", subject: ${subject}, jwks_uri: "${issuer}/keys" } } }`;

  test.each<[string, string, (agent: TestAgent) => Promise<void>]>([
    ['a bootstrap token', 'agent_bound', bind],
    ['a governance file', '', () => apply(`agents: { triage: { ${withKey()} } }`)],
    ['the removal of its workload', 'workload_removed', workload],
  ])(
    'end when it is replaced by %s; their pending items end, and the agent can make new ones',
    async (_what, reason, replace) => {
      const agent = await organisation.agent({ rules: DEMO_RULES });
      const bystander = await childOf(
        world,
        organisation,
        await organisation.agent({ name: 'other', keys: makeKeyPair() }),
      );
      const children = [await childOf(world, organisation, agent), await childOf(world, organisation, agent)];
      const held = await expectStatus(202, children[0]!.act(WRITE));
      await replace(agent);
      for (const child of children)
        expectEnvelope(await withoutCalls(world, () => child.act(WRITE)), 403, 'agent_halted');
      const { body } = await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`);
      expect(body.status).toBe('expired');
      expect((await bystander.act(WRITE)).status).toBe(202);
      if (reason !== 'workload_removed') agent.keys = keys;
      expect((await agent.get('/v1/agents/me')).status).toBe(200);
      // The file gives no grants.
      if (reason === '') return;
      expect((await (await childOf(world, organisation, agent)).act(WRITE)).status).toBe(202);
      const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
      const { id } = rows.find((row: { reason: string }) => row.reason === reason);
      const receipt = (await organisation.ask('GET', `/v1/audit/${id}/receipt`)).body.receipt as string;
      const { change } = JSON.parse(Buffer.from(receipt.split('.')[1]!, 'base64url').toString());
      expect(change.children_ended).toBe(2);
    },
  );

  test.each<[string, (agent: TestAgent) => Promise<void>]>([
    [
      'a file that had removed it adds it with another key',
      async () => {
        await apply('agents: { triage: {} }');
        await apply('agents: {}');
        await apply(`agents: { triage: { ${withKey()} } }`);
      },
    ],
    [
      'a file that had removed it adds it again',
      async () => {
        await apply('agents: { triage: {} }');
        await apply('agents: {}');
        await apply('agents: { triage: {} }');
      },
    ],
    ['an owner sets another workload', (agent) => trust(agent, 'other')],
    ['a file sets another workload', () => apply(trusted('other'))],
  ])('end when %s; setting the same workload ends none', async (_what, replace) => {
    const agent = await organisation.agent({ rules: DEMO_RULES });
    await trust(agent, 'triage');
    const child = await childOf(world, organisation, agent);
    await trust(agent, 'triage');
    expect((await child.act(WRITE)).status).toBe(202);
    await replace(agent);
    const { body } = await organisation.ask('GET', `/owner/agents/${child.agentId}`);
    expect(body).toMatchObject({ status: 'revoked' });
    expectEnvelope(await withoutCalls(world, () => child.act(WRITE)), 403, 'agent_halted');
  });

  test('a child that is requested with the former credential, and created after it was replaced, is refused', async () => {
    const agent = await organisation.agent({ rules: DEMO_RULES });
    const { services } = world.running;
    const wish = {
      name: undefined,
      ttlSeconds: 60,
      grants: [{ platform: 'demo', scopes: ['demo:read'], constraints: {} }],
    };
    const authenticated = async () => {
      const who = await services.authenticateAgent(agent.token(), ALL_PLATFORMS, '127.0.0.1');
      if (who.kind !== 'agent') throw new Error(who.detail);
      return who;
    };
    const byKey = await authenticated();
    expect(await issueChild(services, byKey, wish, 'c')).toMatchObject({ kind: 'issued' });
    await trust(agent, 'triage');
    const of = { organisation_id: organisation.id, agent_id: agent.id };
    const { id } = (await findWorkloadOf(world.db, of))!;
    const { signedWith: _key, ...rest } = byKey;
    const byWorkload = { ...rest, workload: { id } };
    expect(await issueChild(services, byWorkload, wish, 'c')).toMatchObject({ kind: 'issued' });
    await bind(agent);
    await trust(agent, 'other');
    for (const former of [byKey, byWorkload])
      expect(await issueChild(services, former, wish, 'c')).toEqual({ kind: 'credential_ended' });
    agent.keys = keys;
    expect(await issueChild(services, await authenticated(), wish, 'c')).toMatchObject({ kind: 'issued' });
    const children = world.db.selectFrom('agents').select('status').where('parent_id', '=', agent.id).orderBy('status');
    expect((await children.execute()).map(({ status }) => status)).toEqual(['active', 'revoked', 'revoked']);
  });
});
