/** A child identity as its creator uses it: with the bearer that was issued once, and no key. */
import { mintChildToken } from '../../broker/auth/child-token.ts';
import { newAgentId } from '../../broker/crypto/ids.ts';
import { findAgent } from '../../broker/store/agents.ts';
import { type Answer, expectStatus, TestAgent } from './agent.ts';
import type { Organisation, World } from './world.ts';

export class TestChild extends TestAgent {
  bearer: string;

  constructor(parent: TestAgent, at: { id: string; agentId: string; bearer: string }) {
    super({ baseUrl: parent.baseUrl, id: at.id, agentId: at.agentId, ownerId: parent.ownerId, keys: parent.keys });
    this.bearer = at.bearer;
    this.clock = parent.clock;
  }

  override token(): string {
    return this.bearer;
  }
}

export const ALL_DEMO = [{ platform: 'demo', scopes: ['demo:read', 'demo:write', 'demo:delete'] }];

/** POST /v1/agents/children */
export function issue(parent: TestAgent, body: unknown = { grants: ALL_DEMO }): Promise<Answer> {
  return parent.request('POST', '/v1/agents/children', {
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
}

/** Issues a child with everything that its parent holds on `demo`, or with `body`. */
export async function childOf(
  world: World,
  organisation: Organisation,
  parent: TestAgent,
  body: Record<string, unknown> = {},
): Promise<TestChild> {
  const answer = await expectStatus(201, issue(parent, { grants: ALL_DEMO, ...body }));
  const { child_agent_id: agentId, bearer_token: bearer } = answer.body;
  const row = await findAgent(world.db, organisation.id, agentId);
  return new TestChild(parent, { id: row!.id, agentId, bearer });
}

/** Inserts a child in any state, including states that issuing does not create, with a matching bearer. */
export async function putChild(
  world: World,
  organisation: Organisation,
  parent: TestAgent,
  made: Parameters<Organisation['agent']>[0] = {},
): Promise<TestChild> {
  const { broker } = world.running;
  const now = broker.clock();
  const agentId = newAgentId();
  const expires_at = made.agent?.expires_at === undefined ? now + 3_600_000 : made.agent.expires_at;
  const { token, fingerprint } = mintChildToken(
    broker,
    broker.keys.signer('issuing', now),
    { agentId, ownerId: parent.ownerId, parentAgentId: parent.agentId },
    { issuedAt: Math.floor(now / 1000), expiresAt: Math.floor((expires_at ?? now + 86_400_000) / 1000) },
  );
  const { id } = await organisation.agent({
    ...made,
    policy: null,
    agent: {
      ...made.agent,
      agent_id: agentId,
      agent_type: 'child',
      parent_id: parent.id,
      public_key_pem: null,
      key_fingerprint: fingerprint,
      expires_at,
    },
  });
  return new TestChild(parent, { id, agentId, bearer: token.reveal() });
}
