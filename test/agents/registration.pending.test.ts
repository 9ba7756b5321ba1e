/** An agent between its approval and the collection of its key (specification, Agent status): it cannot be used yet. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { revokeUncollected } from '../../broker/admin/agents/revoke-uncollected.ts';
import { openPrivateKey } from '../../broker/admin/registrations/registration-key.ts';
import { findAgent, moveAgent } from '../../broker/store/agents.ts';
import { destroyUncollectedKey, purgeRegistrations } from '../../broker/store/registrations.ts';
import type { AgentTable } from '../../broker/store/tables/agents.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { RegistrationTable } from '../../broker/store/tables/registrations.ts';
import { type Answer, expectStatus, jsonPost, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { issue } from '../world/child.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

type Newcomer = { token: string; agentId: string; name: string };

describe.each(ONE_STORE)(`a registered agent before it has its key on %s${postgresNote}`, (store) => {
  let names = 0;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: [{ effect: 'allow' }] }));
  beforeAll(() => organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true }));
  beforeEach(() => world.db.deleteFrom('registrations').execute());
  const post = (path: string, body: unknown): Promise<Answer> => send(world.running.baseUrl + path, jsonPost(body));
  const approved = async (name = `newcomer ${++names}`, by: Pick<OwnerTable, 'id'> = organisation.owner) => {
    const requested_scopes = [{ platformId: 'demo', scopes: ['demo:read'] }];
    const asked = await post('/v1/register', { owner_id: by.id, agent_name: name, requested_scopes });
    expect(asked.status, asked.text).toBe(202);
    const { registration_token: token, client_id: agentId } = asked.body;
    await expectStatus(200, organisation.ask('POST', `/v1/register/approve/${token}`));
    return { token, agentId, name };
  };
  const claim = async ({ token }: Newcomer): Promise<Answer> => {
    const path = `/v1/register/claim-key/${token}`;
    const answer = await send(world.running.baseUrl + path, {});
    expectDeclared('GET', path, answer);
    return answer;
  };
  /** Expects a claim to fail. Returns the error text. */
  const refused = async (newcomer: Newcomer): Promise<string> => {
    const answer = await claim(newcomer);
    expectEnvelope(answer, 410, 'key_gone');
    expect(answer.text).not.toContain('PRIVATE KEY');
    return answer.body.detail;
  };
  const signing = (agentId: string, pem: string, ownerId = organisation.owner.id): TestAgent => {
    const privateKey = createPrivateKey(pem);
    const publicPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString();
    const keys = { privateKey, publicPem };
    const agent = new TestAgent({ baseUrl: world.running.baseUrl, id: '', agentId, ownerId, keys });
    agent.clock = () => Date.now() + world.clock.skewMs;
    return agent;
  };
  const agentRow = async ({ agentId }: Newcomer): Promise<AgentTable> =>
    (await findAgent(world.db, organisation.id, agentId))!;
  const registrationRow = ({ agentId }: Newcomer): Promise<RegistrationTable> =>
    world.db.selectFrom('registrations').selectAll().where('agent_id', '=', agentId).executeTakeFirstOrThrow();
  const listed = async ({ agentId }: Newcomer) =>
    (await organisation.ask('GET', '/owner/agents')).body.agents.find((one: AgentTable) => one.agent_id === agentId);
  const owner = (verb: string, { agentId }: Newcomer, body: unknown = {}) =>
    organisation.ask('POST', `/owner/agents/${agentId}/${verb}`, body);
  const did = ({ agentId }: Newcomer) => send(`${world.running.baseUrl}/agents/${agentId}/did.json`, {});
  const eventsOf = async ({ agentId }: Newcomer, reason: string) =>
    (await organisation.ask('GET', `/owner/audit?agent=${agentId}&reason=${reason}&kind=event`)).body.rows;
  const changeOf = async ({ id }: { id: string }) => {
    const { body } = await organisation.ask('GET', `/v1/audit/${id}/receipt`);
    return (await verifyReceipt(world, body.receipt)).payload.change;
  };
  const trqp = async (what: string, { agentId }: Newcomer) => {
    const { host } = new URL(world.running.baseUrl);
    const query = { entity_id: agentId, authority_id: `did:web:${host}`, action: 'demo:read', resource: 'demo' };
    return (await organisation.ask('POST', `/v1/trqp/${what}`, query)).body;
  };
  const authzen = async ({ agentId }: Newcomer) => {
    const question = { subject: { type: 'agent', id: agentId }, action: { name: 'demo:read' } };
    const resource = { type: 'platform', id: 'demo' };
    return (await organisation.ask('POST', '/v1/authzen/access', { ...question, resource })).body;
  };
  /** Signs with the key taken from the store and the master key. */
  const thief = async (newcomer: Newcomer): Promise<TestAgent> => {
    const row = await registrationRow(newcomer);
    const ref = { organisation_id: row.organisation_id!, id: row.id, private_key: row.private_key! };
    return signing(newcomer.agentId, openPrivateKey(world.running.broker, ref).reveal());
  };
  const apply = async (text: string) => {
    const answer = await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text, values: {} }));
    return answer.body;
  };

  test('it is pending at every entry point until its key is collected, and active from then on', async () => {
    const newcomer = await approved();
    const since = (await listed(newcomer)).status_since;
    expect(await listed(newcomer)).toMatchObject({ status: 'pending', status_cause: null });
    expect(Math.abs(Date.parse(since) - Date.now())).toBeLessThan(60_000);
    expect((await did(newcomer)).status).toBe(404);
    expect(await authzen(newcomer)).toMatchObject({ decision: false, reason: 'denied' });
    expect(await trqp('authorization', newcomer)).toMatchObject({ authorized: false, message: 'agent_inactive' });
    expect(await trqp('recognition', newcomer)).toMatchObject({ recognized: false, message: 'agent_pending' });
    const agent = await thief(newcomer);
    const refusal = await agent.act(READ);
    expect([refusal.status, refusal.body.error], refusal.text).toEqual([409, 'agent_inactive']);
    expect(refusal.body.message).toContain('the agent is pending: it may call once its key is collected');
    expect((await agent.get('/v1/agent/permissions')).body.data.platforms).toEqual([]);
    expect((await agent.get('/v1/agents/me')).body).toMatchObject({ agent_status: 'pending' });
    const child = await issue(agent, { grants: [{ platform: 'demo', scopes: ['demo:read'] }] });
    expectEnvelope(child, 403, 'agent_not_active');

    world.clock.skewMs = 5_000;
    const key = await expectStatus(200, claim(newcomer));
    const now = await listed(newcomer);
    expect(now).toMatchObject({ status: 'active', status_cause: null, status_detail: null });
    expect(Date.parse(now.status_since) - Date.parse(since)).toBeGreaterThanOrEqual(5_000);
    expect((await signing(newcomer.agentId, key.body.private_key).act(READ)).status).toBe(200);
    expect((await did(newcomer)).status).toBe(200);
    expect(await authzen(newcomer)).toMatchObject({ decision: true });
    expect(await trqp('authorization', newcomer)).toMatchObject({ authorized: true });
    expect(await trqp('recognition', newcomer)).toMatchObject({ recognized: true });
    const [event, ...more] = await eventsOf(newcomer, 'registration_key_claimed');
    expect(more).toEqual([]);
    expect(await changeOf(event)).toMatchObject({ by: newcomer.agentId, how: 'token', status: 'active' });
  });

  test('an agent with its own key, or without need of one, is active immediately', async () => {
    const asked = { agent_name: `invited ${store}`, grants: [] };
    const { bind_secret } = (await organisation.ask('POST', '/owner/invites', asked)).body;
    const bound = await post('/v1/invites/bind', { bind_secret, public_key_pem: makeKeyPair().publicPem });
    expect(bound.body.status, bound.text).toBe('active');
  });

  test('an owner revokes it: the key is not handed out any more, and is destroyed; deleting it is final', async () => {
    const newcomer = await approved();
    for (const verb of ['suspend', 'resume', 'delete']) {
      const answer = await owner(verb, newcomer);
      expectEnvelope(answer, 409, 'conflict');
      expect(answer.body.detail).toContain('This agent is pending');
    }
    expect((await owner('grants/demo', newcomer, { scopes: ['demo:write'] })).status).toBe(200);
    expect((await listed(newcomer)).status).toBe('pending');
    const revoked = await owner('revoke', newcomer, { reason: 'Not today.' });
    expect(revoked.body).toMatchObject({ status: 'revoked', status_cause: 'owner_manual' });
    expect(await refused(newcomer)).toMatch(/^An owner revoked the agent/);
    expect((await registrationRow(newcomer)).private_key).toBeNull();
    expect(await agentRow(newcomer)).toMatchObject({ public_key_pem: null, key_fingerprint: null });
    expect((await did(newcomer)).status).toBe(410);
    expect(await trqp('recognition', newcomer)).toMatchObject({ recognized: false, message: 'agent_revoked' });
    expect((await owner('delete', newcomer)).body.status).toBe('deleted');
    expect(await refused(newcomer)).toMatch(/^An owner revoked the agent/);
    expect(await eventsOf(newcomer, 'registration_key_claimed')).toEqual([]);
  });

  test.each([
    ['first', 0],
    ['in between', 25],
    ['last', 50],
  ])('50 claims and a revocation that comes %s: at most one key, and a revoked agent', async (_when, at) => {
    const newcomer = await approved();
    const claims = (times: number) => Array.from({ length: times }, () => claim(newcomer));
    const { revocation, answers } = await withLockContention(
      world,
      (tx) => tx.updateTable('agents').set({ live_children: 0 }).where('agent_id', '=', newcomer.agentId).execute(),
      async () => {
        const before = claims(at);
        const revoking = owner('revoke', newcomer);
        const all = await Promise.all([...before, ...claims(50 - at)]);
        return { revocation: await revoking, answers: all };
      },
    );
    expect(revocation.status, revocation.text).toBe(200);
    const won = answers.filter(({ status }) => status === 200);
    expect(won.length).toBeLessThanOrEqual(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 410, 'key_gone');
    expect(await eventsOf(newcomer, 'registration_key_claimed')).toHaveLength(won.length);
    expect((await listed(newcomer)).status).toBe('revoked');
    const { private_key, claimed_at } = await registrationRow(newcomer);
    expect([private_key, claimed_at === null]).toEqual([null, won.length === 0]);
    const { public_key_pem } = await agentRow(newcomer);
    expect(public_key_pem === null).toBe(won.length === 0);
    if (won.length === 0) return;
    const late = await signing(newcomer.agentId, won[0]!.body.private_key).act(READ);
    expect([late.status, late.body.reason]).toEqual([403, 'agent_revoked']);
  });

  test.runIf(store === 'postgres')('50 claims that began before a revocation was committed get no key', async () => {
    const newcomer = await approved();
    const { id } = await agentRow(newcomer);
    const place = { organisationId: organisation.id, id };
    const revoked = { from: ['pending'], to: 'revoked', cause: 'owner_manual', detail: null } as const;
    const answers = await withLockContention(
      world,
      async (tx) => {
        expect(await moveAgent(tx, place, revoked, Date.now())).toBe(true);
        await destroyUncollectedKey(tx, place);
      },
      () => Promise.all(Array.from({ length: 50 }, () => claim(newcomer))),
    );
    for (const answer of answers) {
      expectEnvelope(answer, 410, 'key_gone');
      expect(answer.body.detail).toMatch(/^An owner revoked the agent/);
    }
    expect((await listed(newcomer)).status).toBe('revoked');
    expect(await eventsOf(newcomer, 'registration_key_claimed')).toEqual([]);
  });

  test('a claim that cannot be recorded has no effect: the key still exists, and the agent is pending', async () => {
    const newcomer = await approved();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await claim(newcomer), 503, 'audit_unavailable');
      expectEnvelope(await owner('revoke', newcomer), 503, 'audit_unavailable');
    });
    expect((await listed(newcomer)).status).toBe('pending');
    expect((await claim(newcomer)).status).toBe(200);
  });

  test('an owner lets it bind its own key instead: the generated key is destroyed', async () => {
    const newcomer = await approved();
    const made = await expectStatus(200, owner('bootstrap-token', newcomer));
    expect(await listed(newcomer)).toMatchObject({ status: 'pending_bind' });
    expect(await refused(newcomer)).toMatch(/^An owner created a bootstrap token/);
    expect((await registrationRow(newcomer)).private_key).toBeNull();
    expect((await agentRow(newcomer)).public_key_pem).toBeNull();
    const [event] = await eventsOf(newcomer, 'bootstrap_token_made');
    expect(await changeOf(event)).toMatchObject({ status: 'pending_bind' });
    // The deadline for the generated key does not end an agent that waits for another one.
    world.clock.skewMs = HOUR_MS + 1_000;
    await revokeUncollected(world.running.services, world.running.broker.clock());
    expect((await listed(newcomer)).status).toBe('pending_bind');
    const keys = makeKeyPair();
    const bound = await post('/v1/agents/bind', {
      bootstrap_token: made.body.bootstrap_token,
      public_key_pem: keys.publicPem,
    });
    expect(bound.body, bound.text).toMatchObject({ agent_id: newcomer.agentId, status: 'active' });
    const pem = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    expect((await signing(newcomer.agentId, pem).act(READ)).status).toBe(200);
    expect(await refused(newcomer)).toMatch(/^An owner created a bootstrap token/);
  });

  test('of a concurrent claim and bootstrap token neither undoes the other', async () => {
    const newcomer = await approved();
    const [made, ...answers] = await withLockContention(
      world,
      (tx) => tx.updateTable('agents').set({ live_children: 0 }).where('agent_id', '=', newcomer.agentId).execute(),
      () => Promise.all([owner('bootstrap-token', newcomer), ...Array.from({ length: 10 }, () => claim(newcomer))]),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won.length).toBeLessThanOrEqual(1);
    // After the key was collected the agent has one.
    if (won.length === 0 || made!.status !== 410) expect(made!.status, made!.text).toBe(200);
    const { status } = await listed(newcomer);
    expect(status).toBe(won.length === 1 ? 'active' : 'pending_bind');
    if (won.length === 1)
      expect((await signing(newcomer.agentId, won[0]!.body.private_key).act(READ)).status).toBe(200);
  });

  describe('when its key is not collected in time', () => {
    const sweep = () => revokeUncollected(world.running.services, world.running.broker.clock());

    test('is revoked, recorded once, whatever detects it; its name is free, and its owner can delete it', async () => {
      const [newcomer, quick] = [await approved(), await approved()];
      expect((await claim(quick)).status).toBe(200);
      world.clock.skewMs = HOUR_MS - 60_000;
      await sweep();
      expect((await listed(newcomer)).status, 'the last minute is in it').toBe('pending');
      world.clock.skewMs = HOUR_MS + 1_000;
      expect(await refused(newcomer)).toMatch(/^Nobody collected the key within an hour/);
      expect((await listed(newcomer)).status).toBe('pending');
      await Promise.all([sweep(), sweep(), sweep()]);
      expect(await listed(newcomer)).toMatchObject({
        status: 'revoked',
        status_cause: 'unknown',
        status_detail: 'Nobody collected its key within an hour of the approval.',
      });
      expect(await refused(newcomer)).toMatch(/^Nobody collected the key within an hour/);
      expect((await registrationRow(newcomer)).private_key).toBeNull();
      expect((await agentRow(newcomer)).public_key_pem).toBeNull();
      const [event, ...more] = await eventsOf(newcomer, 'agent_revoked');
      expect(more).toEqual([]);
      const { id } = await registrationRow(newcomer);
      expect(await changeOf(event)).toEqual({ by: 'time', how: 'time', registration: id });
      expect((await listed(quick)).status).toBe('active');
      expect((await owner('delete', newcomer)).status).toBe(200);
      const again = await approved(newcomer.name);
      expect((await claim(again)).status).toBe(200);
    });

    test('stays pending while the revocation cannot be recorded, and is not deleted before', async () => {
      const newcomer = await approved();
      world.clock.skewMs = 72 * HOUR_MS;
      await whileAuditRowsAreRefused(world, async () => {
        await sweep();
      });
      expect((await listed(newcomer)).status).toBe('pending');
      await refused(newcomer);
      const now = world.running.broker.clock();
      await purgeRegistrations(world.db, now);
      expect((await registrationRow(newcomer)).private_key).not.toBeNull();
      await sweep();
      expect((await listed(newcomer)).status).toBe('revoked');
      await purgeRegistrations(world.db, now);
      await expect(registrationRow(newcomer)).rejects.toThrow();
    });
  });

  describe('in a governance file', () => {
    const line = (name: string, entry: string) => `agents: { ${JSON.stringify(name)}: ${entry} }`;
    const quoted = (pem: string) => `{ public_key: { pem: ${JSON.stringify(pem)} } }`;

    test('is put under another policy and stays pending; its key is collected as before', async () => {
      const newcomer = await approved();
      await organisation.policy([{ effect: 'deny' }], `none-${names}`);
      const { changes } = await apply(line(newcomer.name, `{ policy: none-${names}, grants: {} }`));
      expect(changes).toContainEqual(expect.objectContaining({ action: 'update', kind: 'agent', name: newcomer.name }));
      expect((await listed(newcomer)).status).toBe('pending');
      const key = await claim(newcomer);
      expect((await signing(newcomer.agentId, key.body.private_key).act(READ)).body.reason).toBe(
        'no_permission_record',
      );
      await apply('agents: {}');
    });

    test('is given its key: it is active, and the generated key is destroyed', async () => {
      const newcomer = await approved();
      const keys = makeKeyPair();
      await apply(line(newcomer.name, quoted(keys.publicPem)));
      expect((await listed(newcomer)).status).toBe('active');
      expect(await refused(newcomer)).toMatch(/^An owner created a bootstrap token/);
      expect((await registrationRow(newcomer)).private_key).toBeNull();
      expect((await agentRow(newcomer)).key_fingerprint).not.toBeNull();
      await apply('agents: {}');
    });

    test('is given its key while it collects the generated one: it ends with the file’s key in either order', async () => {
      const newcomer = await approved();
      const keys = makeKeyPair();
      const [, ...answers] = await withLockContention(
        world,
        (tx) => tx.updateTable('agents').set({ live_children: 0 }).where('agent_id', '=', newcomer.agentId).execute(),
        () =>
          Promise.all([
            apply(line(newcomer.name, quoted(keys.publicPem))),
            ...Array.from({ length: 10 }, () => claim(newcomer)),
          ]),
      );
      const won = answers.filter(({ status }) => status === 200);
      expect(won.length).toBeLessThanOrEqual(1);
      for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 410, 'key_gone');
      expect((await listed(newcomer)).status).toBe('active');
      expect((await registrationRow(newcomer)).private_key).toBeNull();
      const pem = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      expect((await signing(newcomer.agentId, pem).get('/v1/agents/me')).status).toBe(200);
      for (const { body } of won)
        expectEnvelope(await signing(newcomer.agentId, body.private_key).act(READ), 401, 'invalid_signature');
      await apply('agents: {}');
    });

    test('is removed from it again: revoked without a key, and added again with a bootstrap token', async () => {
      const newcomer = await approved();
      await apply(line(newcomer.name, '{}'));
      await apply('agents: {}');
      expect((await listed(newcomer)).status).toBe('revoked');
      expect(await refused(newcomer)).toMatch(/^An owner revoked the agent/);
      expect((await agentRow(newcomer)).public_key_pem).toBeNull();
      const { bootstrap_tokens } = await apply(line(newcomer.name, '{}'));
      expect(bootstrap_tokens).toMatchObject([{ agent: newcomer.name }]);
      expect((await listed(newcomer)).status).toBe('pending_bind');
      expect(await refused(newcomer)).toMatch(/^An owner created a bootstrap token/);
      await apply('agents: {}');
    });

    test('is given to another owner, and the first one is removed: the new owner is in its status, and its key can be collected', async () => {
      const [asked, next] = [await organisation.addOwner('approver'), await organisation.addOwner('admin')];
      const newcomer = await approved(undefined, asked);
      const leave = () => organisation.ask('DELETE', `/owner/owners/${asked.id}`);
      expectEnvelope(await leave(), 409, 'conflict');
      const grants = 'grants: { demo: { scopes: ["demo:read"] } }';
      await apply(line(newcomer.name, `{ owner: ${JSON.stringify(next.email)}, ${grants} }`));
      expect(await listed(newcomer)).toMatchObject({ owner_id: next.id, status: 'pending' });
      expect((await leave()).status).toBe(200);
      const { mcp_config } = (await send(`${world.running.baseUrl}/v1/register/status/${newcomer.token}`, {})).body;
      expect(mcp_config.mcpServers['agent-broker'].env.AGENT_BROKER_OWNER_ID).toBe(next.id);
      const key = await claim(newcomer);
      expect((await signing(newcomer.agentId, key.body.private_key, next.id).act(READ)).status).toBe(200);
    });
  });
});
