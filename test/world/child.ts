/** A child identity as whoever made it uses it: with the bearer that came once, and no key. */
import { expect } from 'vitest';
import { findAgent } from '../../broker/store/agents.ts';
import { type Answer, TestAgent } from './agent.ts';
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

/** A child with everything that its parent holds on `demo`, or with what `body` says. */
export async function childOf(
  world: World,
  organisation: Organisation,
  parent: TestAgent,
  body: Record<string, unknown> = {},
): Promise<TestChild> {
  const answer = await issue(parent, { grants: ALL_DEMO, ...body });
  expect(answer.status, answer.text).toBe(201);
  const { child_agent_id: agentId, bearer_token: bearer } = answer.body;
  const row = await findAgent(world.running.broker.store.db, organisation.id, agentId);
  return new TestChild(parent, { id: row!.id, agentId, bearer });
}
