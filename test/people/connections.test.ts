/** Several connections of a platform with one token per person: which one a call uses, and what agents read about them. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { govern } from '../world/docs-platform.ts';
import { confirmAll, consentAsserted, documentOf } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const CONNECTIONS = { first: { platform: 'docs', default: true }, second: { platform: 'docs' } };

describe.each(ONE_STORE)(`connections that people give tokens for on %s${postgresNote}`, (store) => {
  const { server, world, organisation, agent, document, act } = givenPeople(store);
  let first: string;
  let second: string;
  beforeEach(async () => {
    await expectStatus(200, govern(organisation, document({ connections: CONNECTIONS })));
    const listed = (await organisation.ask('GET', '/owner/connections')).body.connections;
    [first, second] = ['first', 'second'].map(
      (label) => listed.find((one: { label: string }) => one.label === label).id,
    ) as [string, string];
    await grant({ connection: 'second', scopes: ['docs:read'] });
  });

  const grant = async (terms: object, to: TestAgent = agent) => {
    const { status, text } = await organisation.ask('POST', `/owner/agents/${to.id}/grants/docs`, terms);
    expect(status, text).toBeLessThan(300);
  };
  const start = (more: object = {}, by = agent) =>
    by.post('/v1/consent/caller/start', { platform: 'docs', caller: ANN, ...more });
  const give = async (connectionId: string, login: string) => {
    const { body } = await start({ connection_id: connectionId });
    await consentAsserted(server, body.consent_url, login);
    await confirmAll(organisation);
  };
  const permissions = async (by = agent) => (await by.get('/v1/agent/permissions')).body.data;
  const on = (connectionId: string) => act(ANN, { connection_id: connectionId });

  test('a person’s token is for one connection; without connection_id the default connection is used', async () => {
    await give(second, 'ann-second');
    expect((await on(second)).body.data.who).toBe('ann-second');
    // There is no token for the default connection yet: neither for a call that names it, nor for one without connection_id.
    for (const answer of [await on(first), await act(ANN)])
      expect([answer.status, answer.body.reason]).toEqual([412, 'not_consented']);
    const { body } = await start();
    expect((await act(ANN)).body.consent_token).toBe(body.consent_token);
    expect((await on(first)).body.consent_token).toBe(body.consent_token);
    await consentAsserted(server, body.consent_url, 'ann-first');
    await confirmAll(organisation);
    expect((await act(ANN)).body.data.who).toBe('ann-first');
    expect((await on(second)).body.data.who).toBe('ann-second');
    const [platform] = (await permissions()).platforms;
    expect(
      platform.connections.map((one: { connection_id: string; default: boolean }) => [one.connection_id, one.default]),
    ).toEqual([
      [first, true],
      [second, false],
    ]);
    // One token is ended, and the other stays.
    expect((await organisation.ask('POST', '/owner/people/end', { connection_id: first })).body.ended).toBe(1);
    expect((await act(ANN)).status).toBe(412);
    expect((await on(second)).body.data.who).toBe('ann-second');
  });

  test('an agent with grants on several connections, but not the default one, has to name the connection', async () => {
    const other = await organisation.agent({ rules: [{ effect: 'allow' }], grants: {} });
    await govern(organisation, document({ connections: { ...CONNECTIONS, third: { platform: 'docs' } } }));
    for (const connection of ['second', 'third']) await grant({ connection, scopes: ['docs:read'] }, other);
    const started = await start({}, other);
    expect([started.status, started.body.detail]).toEqual([409, expect.stringContaining('connection_id')]);
    const called = await act(ANN, {}, other);
    expect([called.status, called.body.reason]).toEqual([403, 'scope_not_granted']);
    expect((await permissions(other)).platforms[0].connections.some((one: { default: boolean }) => one.default)).toBe(
      false,
    );
    expect((await start({ connection_id: second }, other)).status).toBe(202);
    expect((await start({ connection_id: first }, other)).status).toBe(409);
  });

  test.each<[string, string, (of: TestAgent) => Promise<unknown>]>([
    ['whose grant has ended', 'grant_expired', async () => (world.clock.skewMs = 61_000)],
    [
      'whose policy denies all of it',
      'denied_by_policy',
      async (of) => {
        const policy = await organisation.policy([{ effect: 'deny' }]);
        await organisation.ask('POST', `/owner/agents/${of.id}/policy`, { policy });
      },
    ],
    [
      'while the platform is suspended',
      'platform_suspended',
      () => organisation.ask('POST', '/owner/platforms/docs/suspend', {}),
    ],
  ])('an agent %s cannot start a consent', async (_what, reason, stop) => {
    const other = await organisation.agent({ rules: [{ effect: 'allow' }], grants: {} });
    await grant({ scopes: ['docs:read'], expires_in_seconds: 60 }, other);
    expect((await start({}, other)).status).toBe(202);
    await stop(other);
    other.clock = world.running.broker.clock;
    const refused = await start({}, other);
    expect([refused.status, refused.body.error], refused.text).toEqual([409, 'conflict']);
    expect(refused.body.detail).toContain(reason);
    const called = await act(slack('U-BOB'), {}, other);
    expect([called.status, called.body.reason, called.body.consent_url]).toEqual([403, reason, undefined]);
  });

  test('each connection is listed as per_person, whatever credential is stored, with its own holds and limits', async () => {
    // As if an owner had connected the platform before.
    const { vault, store: stored } = world.running.broker;
    const place = { table: 'connections', organisationId: organisation.id, rowId: first } as const;
    const credential = vault.seal(place, 'the-token-of-the-organisation');
    await stored.db.updateTable('connections').set({ credential }).where('id', '=', first).execute();
    await grant({ connection: 'second', scopes: ['docs:read'], require_approval: true, expires_in_seconds: 3600 });
    const before = await permissions();
    expect(before.platforms[0].connections).toEqual([
      {
        connection_id: first,
        label: 'first',
        status: 'per_person',
        default: true,
        scopes: ['docs:read', 'docs:write'],
        requireApproval: false,
      },
      {
        connection_id: second,
        label: 'second',
        status: 'per_person',
        default: false,
        scopes: ['docs:read'],
        requireApproval: true,
        expiresInSeconds: expect.any(Number),
      },
    ]);
    await give(second, 'ann');
    expect([(await on(second)).status, (await permissions()).version]).toEqual([202, before.version]);
    const policy = await organisation.policy([
      { effect: 'allow' },
      { effect: 'require_approval', scopes: ['docs:write'] },
    ]);
    await organisation.ask('POST', `/owner/agents/${agent.id}/policy`, { policy });
    const after = await permissions();
    expect(after.version).not.toBe(before.version);
    expect(after.platforms[0].connections.map((one: { approvalScopes?: string[] }) => one.approvalScopes)).toEqual([
      ['docs:write'],
      undefined,
    ]);
    // After switching off tokens per person, the connections use the organisation's credential again.
    const shared = documentOf(server, { enabled: false }, { connections: CONNECTIONS });
    expect((await govern(organisation, shared)).status).toBe(200);
    const { platforms } = await permissions();
    expect(platforms[0].connections.map(({ status }: { status: string }) => status)).toEqual([
      'active',
      'not_connected',
    ]);
  });

  test('a question about an agent’s standing permission ignores consents, and is conditional where a rule depends on the person', async () => {
    const authzen = (subject: TestAgent) =>
      subject.post('/v1/authzen/access', {
        subject: { type: 'agent', id: subject.id },
        action: { name: 'docs:read' },
        resource: { type: 'platform', id: 'docs' },
      });
    const host = new URL(world.running.baseUrl).host.replace(':', '%3A');
    const trqp = (subject: TestAgent, context: object = {}) =>
      subject.post('/v1/trqp/authorization', {
        entity_id: `did:web:${host}:agents:${subject.agentId}`,
        authority_id: `did:web:${host}`,
        action: 'docs:read',
        resource: 'docs',
        context,
      });
    expect((await authzen(agent)).body).toMatchObject({ decision: true, reason: 'approved' });
    for (const context of [{}, { connection_id: second }])
      expect((await trqp(agent, context)).body).toMatchObject({ authorized: true, context: { decision: 'allow' } });
    const strict = await organisation.agent({
      rules: [{ effect: 'allow' }, { effect: 'deny', when: '!has(caller.verified) || !caller.verified' }],
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    expect((await authzen(strict)).body).toMatchObject({ decision: true, context: { conditional: true } });
    expect((await trqp(strict)).body).toMatchObject({ authorized: true, context: { conditional: true } });
    expect((await permissions(strict)).platforms[0].conditionalScopes).toEqual(['docs:read']);
    expect((await act(ANN, {}, strict)).body.reason).toBe('denied_by_policy');
    // A scope with required approval is reported as such, whoever the call will be for.
    await grant({ require_approval: true });
    expect((await authzen(agent)).body).toMatchObject({ decision: false, require_approval: true });
  });
});
