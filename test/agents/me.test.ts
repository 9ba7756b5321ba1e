import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

describe.each(STORES)(`GET /v1/agents/me on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());

  test('returns all fields of the identity, and no other', async () => {
    const agent = await organisation.agent({ name: 'Triage ✓', grants: {} });
    const answer = await expectStatus(200, agent.get('/v1/agents/me'));
    expect(answer.body).toEqual({
      status: 'approved',
      agent_id: agent.agentId,
      did: `did:web:localhost%3A${new URL(world.running.baseUrl).port}:agents:${agent.agentId}`,
      name: 'Triage ✓',
      owner_id: agent.ownerId,
      org_id: organisation.id,
      agent_type: 'key',
      agent_status: 'active',
      parent_agent_id: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      expires_at: null,
    });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('ratelimit')).toMatch(/^"agents-me";r=\d+;t=\d+$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('returns the parent and the end of a child', async () => {
    const parent = await organisation.agent();
    const child = await childOf(world, organisation, parent, { ttl_seconds: 60 });
    const { body } = await child.get('/v1/agents/me');
    expect(body).toMatchObject({ agent_type: 'child', agent_status: 'active', parent_agent_id: parent.agentId });
    // Rounded up to a whole second.
    expect(Date.parse(body.expires_at) - Date.now()).toBeLessThanOrEqual(61_000);
    expect(body).not.toHaveProperty('halt');
  });

  test.each(['suspend', 'revoke'] as const)('answers while halted, with the reason: %s', async (verb) => {
    const agent = await organisation.agent({ grants: {} });
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
    const moved = await organisation.ask('POST', `/owner/agents/${agent.id}/${verb}`, { reason: 'because' });
    const { body } = await expectStatus(200, agent.get('/v1/agents/me'));
    expect(body.status).toBe('approved');
    expect(body.agent_status).toBe(`${verb}ed`.replace('ee', 'e'));
    expect(body.halt).toEqual({
      state: body.agent_status,
      since: moved.body.status_since,
      cause: 'owner_manual',
      detail: 'because',
      recoverable_by: 'owner',
      retry_after_seconds: null,
      instructions: expect.stringMatching(/\.$/),
    });
  });

  test('an expired agent is halted; a moment before it is not', async () => {
    const agent = await organisation.agent({ agent: { expires_at: Date.now() + 60_000 }, grants: {} });
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
    world.clock.skewMs = 60_001;
    const { body } = await agent.get('/v1/agents/me');
    expect(body.halt).toMatchObject({ state: 'revoked', since: body.expires_at });
  });

  test('a pending agent has its status, and no halt', async () => {
    const agent = await organisation.agent({ agent: { status: 'pending', agent_type: null }, grants: {} });
    const { status, body } = await agent.get('/v1/agents/me');
    expect([status, body.agent_status, body.agent_type, body.halt]).toEqual([200, 'pending', null, undefined]);
  });

  test('refuses other methods', async () => {
    const agent = await organisation.agent({ grants: {} });
    const answer = await agent.request('DELETE', '/v1/agents/me');
    expect([answer.status, answer.body.error, answer.headers.get('allow')]).toEqual([
      405,
      'method_not_allowed',
      'GET, HEAD',
    ]);
  });
});
