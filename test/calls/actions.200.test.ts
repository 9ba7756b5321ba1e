import { describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, READ, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };

describe.each(STORES)(`POST /v1/actions answers 200 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ rules: ALLOW_ALL }));

  test('a read reaches the platform with the credential, and the agent gets the answer without it', async () => {
    const answer = await expectStatus(200, agent.act({ ...READ, endpoint: '/items?state=open' }));
    expect(answer.body.data).toEqual({ method: 'GET', target: '/v1/items?state=open', body: null });
    expect(answer.body._meta).toMatchObject({ capability: 'actions.execute', upstream_status: 200 });
    expect(answer.body._meta.audit_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(world.upstream.seen[0]!.headers.authorization).toBe(`Bearer ${CANARY}`);
    expect(answer.text).not.toContain(CANARY);
  });

  test('the envelope has data and a complete _meta, and rate limit headers are sent', async () => {
    const answer = await agent.act(READ);
    expect(Object.keys(answer.body).sort()).toEqual(['_meta', 'data']);
    const { timestamp, next_actions, docs, audit_id } = answer.body._meta;
    expect(new Date(timestamp).toISOString()).toBe(timestamp);
    expect(next_actions).toEqual([{ capability: 'audit.receipt', endpoint: `/v1/audit/${audit_id}/receipt` }]);
    expect(new URL(docs).pathname).toBe('/docs');
    expect(answer.headers.get('ratelimit')).toMatch(/^"actions";r=\d+;t=\d+$/);
    expect(answer.headers.get('ratelimit-policy')).toMatch(/^"actions";q=\d+;w=60$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('the receipt says which agent requested what, and never contains the query', async () => {
    const answer = await agent.act({ ...READ, endpoint: '/items?state=open', reason: 'the nightly report' });
    const { payload, row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(payload).toMatchObject({
      agent: agent.agentId,
      organisation: organisation.id,
      platform: 'demo',
      scope: 'demo:read',
      method: 'GET',
      path: '/items',
      result: 'allowed',
      reason: 'approved',
      upstream_status: 200,
      approval: null,
      decision: { matched: [{ source: 'policy', name: 'rule 1', effect: 'allow' }] },
    });
    expect(row.agent_reason).toBe('the nightly report');
    expect(payload.agent_reason_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(payload)).not.toMatch(/state=open|nightly/);
  });

  test('a write is recorded as an intent before it is sent to the platform, and as final before it is answered', async () => {
    let during: unknown;
    world.upstream.answer = (_request, response) => {
      void listAuditRows(world.db, organisation.id, { limit: 1 }).then(([row]) => {
        during = row;
        response.setHeader('content-type', 'application/json').end('{"id":7}');
      });
    };
    const answer = await expectStatus(200, agent.act({ ...WRITE, data: { title: 'x' } }));
    expect(during).toMatchObject({
      id: auditIdOf(answer),
      state: 'intent',
      method: 'POST',
      path: '/items',
      result: null,
    });
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ state: 'final', result: 'allowed', upstream_status: 200 });
    expect(world.upstream.seen[0]).toMatchObject({ method: 'POST', target: '/v1/items', body: '{"title":"x"}' });
    expect(world.upstream.seen[0]!.headers['content-type']).toBe('application/json');
  });

  test('connection_id selects the connection, case-insensitively (BD-14)', async () => {
    const other = await organisation.connection('demo', { secret: 'OTHER-credential-of-16', isDefault: false });
    const made = await organisation.agent({ grants: { demo: { connection_id: other } } });
    for (const connection_id of [undefined, other, other.toUpperCase()]) {
      const answer = await expectStatus(200, made.act({ ...READ, ...(connection_id && { connection_id }) }));
      expect(world.upstream.seen.at(-1)!.headers.authorization).toBe('Bearer OTHER-credential-of-16');
      expect((await evidenceOf(world, made, auditIdOf(answer))).payload.connection).toBe(other);
    }
  });

  test('JW-25 the session id comes from the signed token; the header X-Svc-Session is ignored', async () => {
    const signed = await agent.act(READ, {
      authorization: `Bearer ${agent.token({ session_id: 'run-7' })}`,
      'x-svc-session': 'other',
    });
    const unsigned = await agent.act(READ, { 'x-svc-session': 'other' });
    expect((await evidenceOf(world, agent, auditIdOf(signed))).row.session_id).toBe('run-7');
    expect((await evidenceOf(world, agent, auditIdOf(unsigned))).row.session_id).toBeNull();
  });

  test('a person named in the body or in X-Svc-Caller is stored nowhere', async () => {
    const caller = { source: 'slack', id: 'PERSON:extra' };
    for (const answer of [
      await agent.act({ ...READ, caller }),
      await agent.act(READ, { 'x-svc-caller': 'id slack:PERSON:extra' }),
      await agent.act({ ...READ, caller }, { 'x-svc-caller': 'id slack:PERSON:extra' }),
      await agent.act(READ, { 'x-svc-caller': 'jwt PERSON.b.c' }),
    ]) {
      expect(answer.status, answer.text).toBe(200);
      const { row } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.stringify(row)).not.toMatch(/PERSON/);
    }
    expect(JSON.stringify(world.upstream.seen)).not.toMatch(/PERSON/);
  });

  test('a GraphQL call is sent to exactly the base URL of the platform', async () => {
    const base_url = `${world.upstream.url}/api/graphql`;
    const scopes = { 'gql:read': ['query *'], 'gql:write': ['mutation create*'] };
    await organisation.platform({ id: 'gql', manifest: { kind: 'graphql', base_url, scopes } });
    const made = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { gql: { scopeList: Object.keys(scopes) } },
    });
    const call = { platform: 'gql', endpoint: '/', method: 'POST' };
    const query = '{ viewer { id } }';
    expect((await made.act({ ...call, scope: 'gql:read', data: { query } })).status).toBe(200);
    expect(
      (await made.act({ ...call, scope: 'gql:write', data: { query: 'mutation { createItem { id } }' } })).status,
    ).toBe(200);
    expect(world.upstream.seen.map(({ target }) => target)).toEqual(['/api/graphql', '/api/graphql']);
    expect(JSON.parse(world.upstream.seen[0]!.body)).toEqual({ query });
  });

  test('personal data is flagged by kind, in the row and the receipt, never by value', async () => {
    const answer = await agent.act({ ...WRITE, data: { to: 'ann@acme.example', card: '4111 1111 1111 1111' } });
    const { payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(payload.pii.request).toEqual(['email', 'card']);
    expect(JSON.stringify(payload)).not.toMatch(/ann@|4111/);
    const row = await findAuditRow(world.db, organisation.id, auditIdOf(answer));
    expect(row!.pii).not.toMatch(/ann@|4111/);
  });
});
