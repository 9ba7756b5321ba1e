/** OCSF events of all kinds of audit rows, validated against the schema of the class. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ocsfEvent } from '../../broker/audit-push/ocsf.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { ROOT } from '../world/checkout.ts';
import { furnish } from '../world/full-organisation.ts';
import { readOcsf } from '../world/ocsf-sources.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const [apiActivity, authentication] = ['6003', '3002'].map((uid) =>
  JSON.parse(readFileSync(join(ROOT, `test/audit-push/ocsf-${uid}.schema.json`), 'utf8')),
);
const ajv = new Ajv({ allErrors: true, strictRequired: false, schemas: [apiActivity] });
const valid = ajv.getSchema('ocsf-6003')!;
const validSignIn = ajv.compile(authentication);
const SOURCE = { issuer: 'did:web:localhost', chain: 'localhost/orgs/1' };
const checkout = process.env.OCSF_SCHEMA;
const PROFILES = ['ai_operation', 'record_integrity', 'security_control'];
const sourcesOf = (name: string) => (checkout ? readOcsf(checkout, name, PROFILES) : () => []);
const [sources, sourcesOfSignIns] = [sourcesOf('api_activity'), sourcesOf('authentication')];

// biome-ignore lint/suspicious/noExplicitAny: what it is, is what is tested.
function eventOf(row: AuditRow): any {
  const event = JSON.parse(JSON.stringify(ocsfEvent({ index: 7, row }, SOURCE)));
  const [check, held] = event.class_uid === 3002 ? [validSignIn, sourcesOfSignIns] : [valid, sources];
  expect(check(event), JSON.stringify(check.errors)).toBe(true);
  expect(held(event)).toEqual([]);
  return event;
}

const ROW: AuditRow = {
  organisation_id: '2dcfd88e-39cf-4339-af4b-8ac9c078bb9f',
  id: '01a1f7f2-7347-73d4-80b3-7a1b98655fba',
  state: 'final',
  kind: 'action',
  created_at: 1_795_000_000_000,
  finished_at: 1_795_000_000_250,
  agent_id: '11111111-1111-4111-8111-111111111111',
  agent_public_id: 'agt_su3yjjeo7ert43mfwpef',
  platform_id: 'github',
  connection_id: '22222222-2222-4222-8222-222222222222',
  scope: 'github:issues.write',
  method: 'DELETE',
  path: '/issues/1',
  result: 'allowed',
  reason: 'allowed',
  detail: null,
  decision: JSON.stringify({
    policy: { id: 'p', name: 'careful', version: 3 },
    guardrails: { version: 0 },
    matched: [],
  }),
  approval_id: null,
  session_id: 's-1',
  agent_reason: 'cleaning up',
  violating: null,
  upstream_status: 204,
  flags: null,
  pii: null,
  correlation_id: 'c-1',
  row_hash: 'c44dec5f',
  receipt_kid: 'kid',
  receipt: 'a.b.c',
  receipt_format: null,
  receipt_issuer: null,
  instance_id: '',
};

/** The row of a change that is not about an agent. */
const EVENT: AuditRow = { ...ROW, kind: 'event', agent_id: null, agent_public_id: null, result: null };

describe('an OCSF event', () => {
  test('of a call has actor, activity, platform and result', () => {
    expect(eventOf(ROW)).toMatchObject({
      metadata: { version: '1.9.0', uid: ROW.id, sequence: 7, tenant_uid: ROW.organisation_id, event_code: 'allowed' },
      class_uid: 6003,
      type_uid: 600_304,
      activity_name: 'Delete',
      time: ROW.finished_at,
      duration: 250,
      status_id: 1,
      action_id: 1,
      disposition_id: 1,
      policy: { name: 'careful', version: '3' },
      actor: { user: { uid: ROW.agent_id, name: ROW.agent_public_id, type_id: 4 }, session: { uid: 's-1' } },
      ai_agent: { uid: ROW.agent_id },
      api: { operation: 'DELETE /issues/1', service: { name: 'github' }, response: { code: 204 } },
      http_request: { http_method: 'DELETE', url: { path: '/issues/1' } },
      message: 'agt_su3yjjeo7ert43mfwpef: DELETE /issues/1 on github, allowed (allowed)',
      attestation_list: [{ uid: ROW.id, fingerprint: { value: 'c44dec5f' } }],
      unmapped: { receipt: 'a.b.c', agent_reason: 'cleaning up', scope: 'github:issues.write' },
    });
    expect(eventOf(ROW)).not.toHaveProperty('delegation');
    expect(JSON.stringify(eventOf(ROW))).not.toContain('app_name');
  });

  test.each([
    ['held', 99, 99, 14],
    ['denied', 2, 2, 2],
    ['blocked', 2, 2, 2],
    ['errored', 2, 1, 27],
  ] as const)('of a call that was %s', (result, status_id, action_id, disposition_id) => {
    expect(eventOf({ ...ROW, result })).toMatchObject({ status_id, action_id, disposition_id });
  });

  test('has the delegation of an approval, of a standing approval, of a child, and of a child with an approval', () => {
    const of = (more: Partial<AuditRow>, flags: object) =>
      eventOf({ ...ROW, ...more, flags: JSON.stringify(flags) }).delegation;
    const approval = { decided_by: 'o', decided_at: '2026-11-01T00:00:00.000Z', how: 'passkey' };
    const issuer_uid = SOURCE.issuer;
    const created_time = Date.parse(approval.decided_at);
    expect(of({ approval_id: 'ap' }, { approval })).toEqual({ uid: 'ap', issuer_uid, created_time });
    expect(of({}, { standing_approval: { id: 'st', left: 2 } })).toEqual({ uid: 'st', issuer_uid });
    expect(of({}, { parent: 'agt_parent' })).toEqual({
      uid: ROW.agent_public_id,
      parent_uid: 'agt_parent',
      issuer_uid,
    });
    expect(of({ approval_id: 'ap' }, { approval, parent: 'agt_parent' })).toMatchObject({
      uid: 'ap',
      parent_uid: 'agt_parent',
    });
    // A held call has no approval yet.
    expect(of({ approval_id: 'ap', result: 'held' }, {})).toBeUndefined();
  });

  test('of a change has its author as actor', () => {
    const of = (by: string) =>
      eventOf({
        ...EVENT,
        reason: 'policy_changed',
        flags: JSON.stringify({ change: { by, how: 'api' } }),
      });
    expect(of('owner-uuid')).toMatchObject({ activity_id: 3, actor: { user: { uid: 'owner-uuid', type_id: 1 } } });
    expect(of('operator').actor.user).toMatchObject({ name: 'operator', type_id: 3 });
  });

  test('of an owner who signs in or out is of the class Authentication, with person, method and source', () => {
    const of = (reason: string, change: object, detail: string | null = null) =>
      eventOf({
        ...EVENT,
        reason,
        detail,
        flags: JSON.stringify({ change: { by: 'ann', how: 'console', ...change } }),
      });
    const signedIn = of('owner_signed_in', { session: 's', sign_in: 'passkey' }, 'from 2001:db8::7');
    expect(signedIn).toMatchObject({
      class_uid: 3002,
      category_uid: 3,
      type_uid: 300_201,
      activity_name: 'Logon',
      user: { uid: 'ann', type_id: 1 },
      actor: { user: { uid: 'ann' } },
      session: { uid: 's', issuer: SOURCE.issuer },
      src_endpoint: { ip: '2001:db8::7' },
      auth_protocol: 'WebAuthn',
      service: { name: 'Agent Broker' },
      status_id: 1,
    });
    expect(signedIn).not.toHaveProperty('api');
    expect(of('owner_signed_in', { session: 's', sign_in: 'provider' }, 'from 192.0.2.1')).toMatchObject({
      auth_protocol_id: 4,
      src_endpoint: { ip: '192.0.2.1' },
    });
    expect(of('owner_signed_out', { session: 's' })).toMatchObject({ type_uid: 300_202, activity_name: 'Logoff' });
    const ended = of('owner_sessions_ended', { by: 'broker', owner: 'ann' }, 'ann@acme.example');
    expect(ended).toMatchObject({
      type_uid: 300_202,
      user: { uid: 'ann' },
      actor: { user: { name: 'broker', type_id: 3 } },
      auth_protocol: 'OpenID',
    });
    expect(ended).not.toHaveProperty('src_endpoint');
  });

  test('of any row is valid by the schema, whatever its columns contain', () => {
    const text = fc.option(
      fc.oneof(
        fc.string({ minLength: 1 }),
        fc.constantFrom(
          '{}',
          '[]',
          'null',
          '{"parent":1}',
          '/a',
          'from 192.0.2.1',
          '{"change":{"by":"a","sign_in":"constructor"}}',
        ),
      ),
      {
        nil: null,
      },
    );
    const column = {
      result: fc.option(fc.constantFrom('allowed', 'held', 'denied', 'blocked', 'errored'), { nil: null }),
      kind: fc.constantFrom('action', 'event'),
      method: fc.option(fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', ''), { nil: null }),
      reason: fc.oneof(
        fc.constantFrom('policy_created', 'grant_removed', 'owner_signed_in', 'owner_sessions_ended', 'constructor'),
        fc.string({ minLength: 1 }),
      ),
      finished_at: fc.option(fc.nat(), { nil: null }),
      upstream_status: fc.option(fc.integer({ min: 100, max: 599 }), { nil: null }),
      ...Object.fromEntries(
        (
          [
            'agent_id',
            'agent_public_id',
            'platform_id',
            'connection_id',
            'scope',
            'path',
            'detail',
            'decision',
            'approval_id',
            'session_id',
            'agent_reason',
            'violating',
            'flags',
            'pii',
            'row_hash',
            'receipt_kid',
            'receipt',
          ] as const
        ).map((name) => [name, text]),
      ),
    };
    fc.assert(
      fc.property(fc.record(column), (columns) => {
        eventOf({ ...ROW, ...(columns as Partial<AuditRow>) });
      }),
      { numRuns: sized(100, 300) },
    );
  });

  test('the validation of these tests rejects attributes that the class does not have', () => {
    const event = eventOf(ROW);
    for (const wrong of [
      { ...event, secret: 1 },
      { ...event, actor: { ...event.actor, app_name: 'x' } },
      { ...event, severity_id: 7 },
      { ...event, status_id: 2, status: 'Success' },
      { ...event, metadata: { ...event.metadata, version: '1.8.0' } },
      { ...event, src_endpoint: {} },
      { ...event, src_endpoint: undefined },
    ])
      expect(valid(JSON.parse(JSON.stringify(wrong)))).toBe(false);
  });
});

test.each(ONE_STORE)('every audit row of an organisation becomes a valid event, on %s', async (store) => {
  const world = await startWorld(store);
  const { organisation, agent } = await furnish(world, 'alpha');
  const { approvals } = (await organisation.ask('GET', '/owner/approvals')).body;
  expect((await organisation.approve(approvals[0].approval_id)).status).toBe(200);
  expect((await organisation.deny(approvals[1].approval_id)).status).toBe(200);
  await organisation.ask('POST', '/owner/policies', { name: 'new', rules: [{ effect: 'allow' }] });
  await agent.act({ platform: 'alpha-platform', endpoint: '/items', method: 'DELETE', scope: 'demo:delete' });
  await agent.act({ platform: 'nowhere', endpoint: '/items', method: 'GET', scope: 'demo:read' });
  await agent.request('POST', '/v1/actions', { body: '{', headers: { 'content-type': 'application/json' } });
  const rows = await world.db.selectFrom('audit_rows').selectAll().where('state', '=', 'final').execute();
  const reasons = new Set(rows.map((row) => eventOf(row).metadata.event_code));
  expect(reasons.size).toBeGreaterThan(8);
  for (const row of rows) expect(eventOf(row).unmapped.receipt !== undefined).toBe(row.receipt !== null);
});
