import { describe, expect, test } from 'vitest';
import { listConnections } from '../../broker/store/connections.ts';
import type { Answer, TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, READ, shared } from '../world/world.ts';

const PER_PERSON = {
  auth: {
    type: 'oauth2',
    authorization_endpoint: 'https://id.example/a',
    token_endpoint: 'https://id.example/t',
    client_id: 'x',
  },
  per_person: { enabled: true, asserted: ['slack'] },
};

describe.each(ONE_STORE)(`POST /v1/actions answers 409 and 412 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());

  const agentOn = async (platform = 'demo', terms = {}, agent = {}) =>
    organisation.agent({ rules: ALLOW_ALL, grants: { [platform]: terms }, agent });

  /** Expects the required fields of both bodies, the row and the receipt. */
  async function stopped(agent: TestAgent, answer: Answer, status: 409 | 412, error: string, result: string) {
    expect([answer.status, answer.body.error], answer.text).toEqual([status, error]);
    const { platform, correlation_id, message, audit_id, consent_requested } = answer.body;
    expect(correlation_id).toBe(answer.headers.get('x-correlation-id'));
    expect(message).toMatch(/\.$/);
    if (status === 409) expect(consent_requested).toBe(error === 'needs_consent');
    const { row } = await evidenceOf(world, agent, audit_id);
    expect(row).toMatchObject({ result, platform_id: platform });
    return row;
  }

  test.each(['pending', 'pending_bind'] as const)('409 agent_inactive: for an agent that is %s', async (status) => {
    const agent = await agentOn('demo', {}, { status });
    const answer = await withoutCalls(world, () => agent.act(READ));
    const row = await stopped(agent, answer, 409, 'agent_inactive', 'denied');
    expect(row.reason).toBe('agent_inactive');
    expect(answer.body.platform).toBe('demo');
    const when = { pending: 'collected', pending_bind: 'bound' }[status];
    expect(answer.body.message).toContain(`agent is ${status}: it may call once its key is ${when}`);
    expect((await (await agentOn()).act(READ)).status).toBe(200);
  });

  test('409 platform_reauth_needed: when the platform refuses the credential; no text of the platform is passed on (CX-04)', async () => {
    await organisation.platform({ id: 'strict' });
    const agent = await agentOn('strict');
    const call = { ...READ, platform: 'strict' };
    const status = async () =>
      (await listConnections(world.db, organisation.id)).find((c) => c.platform_id === 'strict')!.status;
    world.upstream.answer = (_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end(`invalid token ${CANARY}, says the platform`);
    };
    const answer = await agent.act(call);
    const row = await stopped(agent, answer, 409, 'platform_reauth_needed', 'errored');
    expect(row).toMatchObject({ reason: 'platform_reauth_needed', upstream_status: 401 });
    expect(answer.text).not.toMatch(/CANARY|says the platform/);
    expect(await status()).toBe('reauth_needed');
    // The mark does not block calls: it is cleared as soon as the platform accepts the credential again.
    world.upstream.answer = undefined;
    expect((await agent.act(call)).status).toBe(200);
    expect(await status()).toBe('active');
  });

  test.each(['', 'line\nbreak', 'é'])(
    '409 platform_reauth_needed: a stored credential that no header carries: %j',
    async (secret) => {
      const id = `broken-${secret.length}-${secret.charCodeAt(0) || 0}`;
      await organisation.platform({ id, secret });
      const agent = await agentOn(id);
      const answer = await withoutCalls(world, () => agent.act({ ...READ, platform: id }));
      await stopped(agent, answer, 409, 'platform_reauth_needed', 'errored');
      if (secret) expect(answer.text).not.toContain(secret);
    },
  );

  test('409 needs_consent: when the platform granted the connection less than the scope needs', async () => {
    const needs = { 'demo:read': ['items.read', 'items'] };
    await organisation.platform({ id: 'consenting', manifest: { needs }, secret: null });
    const less = await organisation.connection('consenting', { isDefault: false, upstreamScopes: ['profile'] });
    const enough = await organisation.connection('consenting', {
      isDefault: false,
      upstreamScopes: ['profile', 'items'],
    });
    const silent = await organisation.connection('consenting', { isDefault: false });
    const call = { ...READ, platform: 'consenting' };
    const agent = await agentOn('consenting', { connection_id: less });
    const answer = await withoutCalls(world, () => agent.act(call));
    const row = await stopped(agent, answer, 409, 'needs_consent', 'blocked');
    expect(row.reason).toBe('needs_consent');
    expect(answer.body).toMatchObject({ reason_code: 'needs_consent', scope: 'demo:read' });
    for (const connection_id of [enough, silent])
      expect((await (await agentOn('consenting', { connection_id })).act(call)).status).toBe(200);
  });

  test('412 platform_not_connected: for a grant without a connection, or with one that has no credential', async () => {
    await organisation.platform({ id: 'lonely', secret: null });
    const agent = await agentOn('lonely');
    const call = { ...READ, platform: 'lonely' };
    const answer = await withoutCalls(world, () => agent.act(call));
    const row = await stopped(agent, answer, 412, 'platform_not_connected', 'blocked');
    expect(row).toMatchObject({ reason: 'platform_not_connected', connection_id: null });
    const empty = await organisation.connection('lonely', { secret: null, isDefault: false });
    const other = await agentOn('lonely', { connection_id: empty });
    await stopped(other, await withoutCalls(world, () => other.act(call)), 412, 'platform_not_connected', 'blocked');
    await organisation.connection('lonely');
    expect((await agent.act(call)).status).toBe(200);
  });

  test('a call that could not be made answers 412 and is not held', async () => {
    await organisation.platform({ id: 'unheld', secret: null });
    const agent = await agentOn('unheld', { require_approval: 1 });
    const answer = await withoutCalls(world, () => agent.act({ ...READ, platform: 'unheld' }));
    await stopped(agent, answer, 412, 'platform_not_connected', 'blocked');
  });

  test.each<[string, Record<string, unknown>, Record<string, string>, string]>([
    ['CA-08 no caller', {}, {}, 'no_caller'],
    [
      'CA-07 a source whose word is not taken',
      { caller: { source: 'teams', id: 'PERSON-1' } },
      {},
      'asserted_not_allowed',
    ],
    ['CA-07 the same in the header', {}, { 'x-svc-caller': 'id teams:PERSON-1' }, 'asserted_not_allowed'],
    ['a person who has not connected', { caller: { source: 'slack', id: 'PERSON-1' } }, {}, 'not_consented'],
    ['CA-03 an assertion of an untrusted issuer', {}, { 'x-svc-caller': 'jwt a.eyJpc3MiOiJ4In0.c' }, 'no_caller'],
    ['an assertion that is no JWT', {}, { 'x-svc-caller': 'jwt opaque-token' }, 'no_caller'],
  ])('412 consent_required: %s; never the shared credential', async (_name, more, headers, reason) => {
    await organisation.platform({ id: 'personal', manifest: PER_PERSON, secret: null });
    const connection_id = await organisation.connection('personal', { isDefault: false });
    for (const terms of [{ connection_id }, {}]) {
      const agent = await agentOn('personal', terms);
      const answer = await withoutCalls(world, () => agent.act({ ...READ, platform: 'personal', ...more }, headers));
      // Without a connection there is none for which this person could give a token.
      if (reason === 'not_consented' && !('connection_id' in terms)) {
        await stopped(agent, answer, 412, 'platform_not_connected', 'blocked');
        continue;
      }
      const row = await stopped(agent, answer, 412, 'consent_required', 'blocked');
      expect([answer.body.reason, row.reason]).toEqual([reason, 'consent_required']);
      // A caller that was named and not accepted is not asked for again.
      const isNamed = Object.keys({ ...more, ...headers }).length > 0;
      if (reason === 'no_caller')
        expect(answer.body.message).toMatch(isNamed ? /not accepted, for the reason in "detail"/ : /name the person/);
      expect(JSON.stringify(row)).not.toContain('PERSON-1');
    }
  });

  test('a refusal by the decision takes precedence over 412 consent_required', async () => {
    await organisation.platform({ id: 'personal', manifest: PER_PERSON, secret: null });
    const agent = await agentOn('personal');
    const answer = await withoutCalls(world, () => agent.act({ ...READ, platform: 'personal', scope: 'demo:none' }));
    expect([answer.status, answer.body.reason]).toEqual([403, 'scope_not_granted']);
    await evidenceOf(world, agent, auditIdOf(answer));
  });
});
