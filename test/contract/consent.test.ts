/** The two routes of people's consents (specification, Per-person consent): every status that they declare. */
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { govern, READ_DOCS } from '../world/docs-platform.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { agentOfPeople, confirmAll, consentAsserted, documentOf, outlivePerson, statusOf } from '../world/people.ts';
import { startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { givenWorld, type Organisation, shared, startWorld } from '../world/world.ts';

const ANN = { source: 'slack', id: 'U-ANN' };

describe('consents of people', () => {
  let organisation: Organisation;
  let agent: TestAgent;

  const server = shared(() => startAuthorizationServer());
  const world = givenWorld('sqlite', () => ({
    AGENT_BROKER_ALLOW_PRIVATE: server.address,
    AGENT_BROKER_ENTITLEMENTS_OFF: 'per_person_tokens@00000000-0000-4000-8000-000000000000',
  }));
  beforeAll(async () => {
    server.serve(world.running.baseUrl);
    organisation = await world.organisation();
    expect((await govern(organisation, documentOf(server, { asserted: ['slack'] }))).status).toBe(200);
    agent = await agentOfPeople(organisation);
  });

  const begin = (body: object, by = agent, headers: Record<string, string> = {}) =>
    by.post('/v1/consent/caller/start', body, headers);

  test('POST /v1/consent/caller/start → 202', async () => {
    const { body } = await expectStatus(202, begin({ platform: 'docs', caller: ANN }));
    expect(body).toEqual({
      status: 'consent_pending',
      consent_url: `${world.running.baseUrl}/me/consent/${body.consent_token}`,
      consent_token: expect.stringMatching(/^cns_[\w-]{43}$/),
      expires_at: expect.any(String),
      poll_url: `/v1/consent/caller/status/${body.consent_token}`,
      message: expect.any(String),
    });
  });

  test.each<[string, object]>([
    ['no caller', { platform: 'docs' }],
    ['an empty id', { platform: 'docs', caller: { source: 'slack', id: '' } }],
    ['an id of 257 characters', { platform: 'docs', caller: { source: 'slack', id: 'x'.repeat(257) } }],
    ['an assertion of an untrusted issuer', { platform: 'docs', caller: { assertion: 'a.eyJpc3MiOiJ4In0.c' } }],
    ['a source that is not accepted', { platform: 'docs', caller: { source: 'teams', id: 'U-ANN' } }],
  ])('POST /v1/consent/caller/start → 400: %s', async (_what, body) => {
    expectEnvelope(await begin(body), 400, 'invalid_request');
  });

  test('POST /v1/consent/caller/start → 202: the person in X-Svc-Caller', async () => {
    const fresh = await agentOfPeople(organisation);
    const headers = { 'x-svc-caller': 'id slack:U-ANN' };
    const { status, body } = await begin({ platform: 'docs' }, fresh, headers);
    expect([status, body.status]).toEqual([202, 'consent_pending']);
    const inBody = await begin({ platform: 'docs', caller: ANN }, fresh);
    const inBoth = await begin({ platform: 'docs', caller: ANN }, fresh, headers);
    expect([inBody.body.consent_token, inBoth.body.consent_token]).toEqual([body.consent_token, body.consent_token]);
  });

  test.each<[string, string, object, string]>([
    ['a malformed header', 'U-ANN', { platform: 'docs' }, 'X-Svc-Caller: write'],
    ['a header and a body that differ', 'id slack:U-BOB', { platform: 'docs', caller: ANN }, 'another caller than'],
  ])('POST /v1/consent/caller/start → 400: %s', async (_what, header, body, words) => {
    const answer = await begin(body, agent, { 'x-svc-caller': header });
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.text).toContain(words);
  });

  test('POST /v1/consent/caller/start → 401', async () => {
    const answer = await send(
      `${world.running.baseUrl}/v1/consent/caller/start`,
      jsonPost({ platform: 'docs', caller: ANN }),
    );
    expect(answer.status).toBe(401);
  });

  test('POST /v1/consent/caller/start → 402: switched off, and calls do not use another credential', async () => {
    const off = await startWorld('sqlite', {
      AGENT_BROKER_ALLOW_PRIVATE: server.address,
      AGENT_BROKER_ENTITLEMENTS_OFF: 'per_person_tokens',
    });
    const other = await off.organisation();
    expect((await govern(other, documentOf(server, { asserted: ['slack'] }))).status).toBe(200);
    const theirs = await agentOfPeople(other);
    expectEnvelope(await begin({ platform: 'docs', caller: ANN }, theirs), 402, 'not_on_plan');
    const answer = await theirs.act({ ...READ_DOCS, caller: ANN });
    expect([answer.status, answer.body.reason, answer.body.consent_url]).toEqual([412, 'not_consented', undefined]);
    expect(answer.body.message).toBe('This person has not connected the platform.');
  });

  test('POST /v1/consent/caller/start → 409: a platform with a token of the organisation', async () => {
    const other = await (await world.demoOrganisation()).agent();
    const answer = await begin({ platform: 'demo', caller: ANN }, other);
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toBe('demo does not hold one token per person. Make the call without a consent.');
  });

  test('POST /v1/consent/caller/start → 409: an unknown platform', async () => {
    const answer = await begin({ platform: 'nothing', caller: ANN });
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toBe('The organisation has no platform "nothing".');
  });

  test('POST /v1/consent/caller/start → 429: 20 are pending', async () => {
    const busy = await agentOfPeople(organisation);
    const one = (id: number) => begin({ platform: 'docs', caller: { source: 'slack', id: `U-${id}` } }, busy);
    const begun = await Promise.all(Array.from({ length: 20 }, (_, id) => one(id)));
    expect(begun.map(({ status }) => status)).toEqual(Array(20).fill(202));
    expectEnvelope(await one(20), 429, 'too_many_consents');
    const child = await childOf(world, organisation, busy, { grants: [{ platform: 'docs', scopes: ['docs:read'] }] });
    const another = { platform: 'docs', caller: { source: 'slack', id: 'U-21' } };
    expectEnvelope(await begin(another, child), 429, 'too_many_consents');
    await expectStatus(202, begin(another));
    // The same person gets the same consent.
    expect((await one(3)).body.consent_token).toBe(begun[3]!.body.consent_token);
  });

  const expired = () => ({ assertion: 'a.eyJpc3MiOiJ4In0.c' });
  test.each<[string, object | undefined, string]>([
    ['no person is named', undefined, 'no_caller'],
    ['an assertion that cannot be verified', expired(), 'no_caller'],
    ['a source that is not accepted', { source: 'teams', id: 'U-ANN' }, 'asserted_not_allowed'],
    ['a person without a token', { source: 'slack', id: 'U-DEE' }, 'not_consented'],
  ])('POST /v1/actions → 412: %s', async (_what, caller, reason) => {
    const fresh = await agentOfPeople(organisation);
    const { body } = await expectStatus(412, fresh.act({ ...READ_DOCS, ...(caller && { caller }) }));
    expect(body).toEqual({
      error: 'consent_required',
      reason,
      platform: 'docs',
      message: expect.any(String),
      correlation_id: expect.any(String),
      audit_id: expect.any(String),
      ...(reason !== 'not_consented' && body.detail !== undefined && { detail: expect.any(String) }),
      ...(reason === 'not_consented' && {
        consent_url: expect.stringContaining('/me/consent/cns_'),
        consent_token: expect.stringMatching(/^cns_/),
        poll_url: `/v1/consent/caller/status/${body.consent_token}`,
        expires_at: expect.stringMatching(/Z$/),
      }),
    });
  });

  test('POST /v1/actions → 409: a person who has withdrawn the consent at the platform', async () => {
    const caller = { source: 'slack', id: 'U-EVE' };
    const call = { ...READ_DOCS, caller };
    await consentAsserted(server, (await agent.act(call)).body.consent_url, 'eve');
    await confirmAll(organisation);
    const answer = await agent.act(call);
    // The token is redacted from the platform's answer.
    expect([answer.status, answer.body.data], answer.text).toEqual([200, { who: 'eve', echo: 'Bearer [redacted]' }]);
    await outlivePerson(world, organisation, 'eve@docs.example');
    server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
    const { status, body } = await agent.act(call);
    server.instead = undefined;
    expect(status).toBe(409);
    expect(body).toEqual({
      error: 'platform_reauth_needed',
      platform: 'docs',
      scope: 'docs:read',
      consent_requested: false,
      message: expect.stringContaining('consent again'),
      correlation_id: expect.any(String),
      audit_id: expect.any(String),
    });
  });

  test('GET /v1/consent/caller/status/{token} → 200: pending, completed, expired', async () => {
    const { body } = await begin({ platform: 'docs', caller: { source: 'slack', id: 'U-BOB' } });
    const { consent_token: token, expires_at } = body;
    expect((await statusOf(world, token)).body).toEqual({ status: 'pending', platform_id: 'docs', expires_at });
    await consentAsserted(server, body.consent_url, 'bob');
    expect((await statusOf(world, token)).body.status).toBe('completed');
    const other = await begin({ platform: 'docs', caller: { source: 'slack', id: 'U-CY' } });
    world.clock.skewMs = 31 * 60_000;
    expect((await statusOf(world, other.body.consent_token)).body.status).toBe('expired');
    world.clock.skewMs = 0;
  });

  test.each(['cns_x', `cns_${'A'.repeat(43)}`, 'nothing'])(
    'GET /v1/consent/caller/status/{token} → 404: %s (CA-12)',
    async (token) => {
      expectEnvelope(await statusOf(world, token), 404, 'not_found');
    },
  );
});
