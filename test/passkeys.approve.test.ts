/** Approving by passkey (specification, Passkeys, sign/begin and sign/finish). */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from './world/agent.ts';
import { evidenceOf, withoutCalls } from './world/evidence.ts';
import { approveWith, enrol, signBegin } from './world/passkeys.ts';
import { Authenticator } from './world/software-authenticator.ts';
import { postgresNote, STORES } from './world/stores.ts';
import { type Organisation, startWorld, type World } from './world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items?notify=1',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'do not tell' },
  reason: 'because',
};

describe.each(STORES)(`approving by passkey on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let key: Authenticator;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
    key = await enrol(world, organisation);
  });
  beforeEach(() => {
    world.clock.skewMs = 0;
    world.upstream.answer = undefined;
  });

  async function hold(by = agent, request: Record<string, unknown> = WRITE): Promise<string> {
    const answer = await withoutCalls(world, () => by.act(request));
    expect(answer.status, answer.text).toBe(202);
    return answer.body.approval_id;
  }

  test('the options name the owner’s passkeys and nothing of the request', async () => {
    const id = await hold();
    const { status, body, text } = await signBegin(world, id);
    expect(status).toBe(200);
    expect(body).toEqual({
      challenge: expect.stringMatching(/^[\w-]{110}$/),
      rpId: 'localhost',
      allowCredentials: [{ id: key.credentialId, type: 'public-key', transports: ['internal', 'hybrid'] }],
      userVerification: 'preferred',
      timeout: 60_000,
    });
    expect(text).not.toMatch(/items|demo|because|tell/);
  });

  test.each(['ES256', 'RS256', 'Ed25519'] as const)('a held call is approved and made, with %s', async (algorithm) => {
    const own = await enrol(world, organisation, {
      authenticator: new Authenticator(world.running.baseUrl, { algorithm }),
    });
    const id = await hold();
    const before = world.upstream.seen.length;
    const answer = await approveWith(world, id, own);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: expect.any(String) });
    expect(world.upstream.seen.length).toBe(before + 1);
    const made = await agent.get(`/v1/approvals/${id}`);
    expect(made.body).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(made.body.executed_at).toBe(answer.body.executed_at);
    const { payload } = await evidenceOf(world, agent, made.body.audit_id);
    expect(payload.approval).toMatchObject({
      approval_id: id,
      how: 'passkey',
      decided_by: organisation.owner.id,
      passkey: { credential_id: own.credentialId, user_verified: true, counter: 'increased' },
    });
  });
});
