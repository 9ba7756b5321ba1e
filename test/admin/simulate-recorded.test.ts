/** POST /owner/simulate/recorded: the result of other rules for recorded calls, and the calls for which it cannot be determined. */
import { describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { DEMO_RULES, fresh, givenWorld, READ } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { amount: 40 } };
const EDIT = {
  platform: 'demo',
  endpoint: '/items/7?hard=1',
  method: 'PATCH',
  scope: 'demo:write',
  data: { amount: 40 },
};

describe.each(ONE_STORE)(`POST /owner/simulate/recorded on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const tryOut = (body: Record<string, unknown>) => organisation.ask('POST', '/owner/simulate/recorded', body);

  /** An agent under a policy of its own, with a read, an edit and a held write. */
  const given = async (): Promise<{ agent: TestAgent; policy: string }> => {
    const policy = await organisation.policy(DEMO_RULES);
    const agent = await organisation.agent({ policy });
    for (const call of [READ, READ, EDIT]) expect((await agent.act(call)).status).toBe(200);
    expect((await agent.act(WRITE)).status).toBe(202);
    // A refusal that is not due to rules stays one, whatever the rules are.
    expect((await agent.act({ ...READ, scope: 'demo:write' })).status).toBe(403);
    return { agent, policy };
  };

  test('counts the calls that a rule without a condition changes, with examples', async () => {
    const { agent, policy } = await given();
    const other = await organisation.agent();
    await other.act(READ);
    const answer = await withoutCalls(world, () =>
      tryOut({
        policy,
        policy_rules: [
          { name: 'reads', effect: 'allow', methods: ['GET'] },
          { name: 'rest', effect: 'require_approval', methods: ['PATCH', 'POST'] },
        ],
      }),
    );
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ complete: true, calls: 4, same: 3, changed: 1, cannot_tell: 0 });
    expect(answer.body.changes).toEqual([
      {
        before: 'allow',
        after: 'require_approval',
        calls: 1,
        examples: [
          expect.objectContaining({
            agent_id: agent.agentId,
            agent_name: expect.any(String),
            method: 'PATCH',
            path: '/items/7',
            result: 'allowed',
            rule_before: { source: 'policy', name: 'rule 1' },
            rule_after: { source: 'policy', name: 'rest' },
          }),
        ],
      },
    ]);
  });

  test('a call under a scope of its content is decided by the rules for the scope of its operation, too', async () => {
    const manifest = {
      scopes: { 'demo:write': ['PATCH /items/*'], 'demo:admin': ['POST /admin'] },
      content_scopes: { 'PATCH /items/*': [{ pointer: '/role', scope: 'demo:admin' }] },
    };
    const made = await world.organisation();
    await made.platform({ manifest });
    const policy = await made.policy([{ effect: 'allow' }]);
    const grants = { demo: { scopeList: ['demo:write', 'demo:admin'] } };
    const agent = await made.agent({ policy, grants });
    const admin = { platform: 'demo', scope: 'demo:admin' };
    const calls = [
      { ...EDIT, ...admin, data: { role: 'x' } },
      { ...admin, endpoint: '/admin', method: 'POST', data: {} },
    ];
    for (const call of calls) expect((await agent.act(call)).status).toBe(200);
    const tried = await made.ask('POST', '/owner/simulate/recorded', {
      policy,
      policy_rules: [{ effect: 'allow' }, { name: 'edits', effect: 'deny', scopes: ['demo:write'] }],
    });
    expect(tried.body).toMatchObject({ calls: 2, same: 1, changed: 1, cannot_tell: 0 });
    expect(tried.body.changes[0].examples[0]).toMatchObject({ path: '/items/7', rule_after: { name: 'edits' } });
  });

  test('values that a row does not contain are never guessed; a held call is evaluated by its sealed request', async () => {
    const { policy } = await given();
    const rules = (when: string) => [...DEMO_RULES, { name: 'big', effect: 'deny', when }];
    const big = await tryOut({ policy, policy_rules: rules('has(request.body.amount) && request.body.amount > 30') });
    expect(big.body).toMatchObject({ calls: 4, same: 0, changed: 1, cannot_tell: 3 });
    expect(big.body.changes[0]).toMatchObject({ before: 'require_approval', after: 'deny', calls: 1 });
    const small = await tryOut({ policy, policy_rules: rules('has(request.body.amount) && request.body.amount > 50') });
    expect(small.body).toMatchObject({ calls: 4, same: 1, changed: 0, cannot_tell: 3 });
    // Known values decide: methods, endpoints, scopes, the agent, the time; the query string is not known.
    const known = await tryOut({
      policy,
      policy_rules: rules('request.method == "PATCH" && request.endpoint.startsWith("/items/")'),
    });
    expect(known.body).toMatchObject({ changed: 1, cannot_tell: 0 });
    const query = await tryOut({ policy, policy_rules: rules('request.query.exists(name, name == "hard")') });
    expect(query.body).toMatchObject({ changed: 0, cannot_tell: 3 });
    const first = await tryOut({ policy, policy_rules: rules('first_time.operation') });
    expect(first.body).toMatchObject({ changed: 0, cannot_tell: 4 });
    // A rule that cannot make the result stricter does not matter.
    const mild = await tryOut({
      policy,
      policy_rules: [{ effect: 'deny' }, { effect: 'require_approval', when: 'request.body.x == 1' }],
    });
    expect(mild.body).toMatchObject({ changed: 4, cannot_tell: 0 });
  });

  test('a rule with a look-back condition is evaluated on the calls before each call', async () => {
    const policy = await organisation.policy(DEMO_RULES);
    const agent = await organisation.agent({ policy });
    const other = await organisation.agent({ policy });
    const act = async (by: TestAgent, call: Record<string, unknown>) => (await by.act(call)).body._meta?.audit_id;
    const first = await act(agent, EDIT);
    await act(agent, READ);
    const second = await act(agent, EDIT);
    const third = await act(other, EDIT);
    const rule = (after: object) => [{ name: 'after-reading', effect: 'deny', scopes: ['demo:write'], after }];
    const tried = await expectStatus(200, tryOut({ guardrails: rule({ scopes: ['demo:read'], within: '1h' }) }));
    // The read was before the second edit, and of another agent than the third.
    expect(tried.body).toMatchObject({ calls: 4, same: 3, changed: 1, cannot_tell: 0 });
    expect(tried.body.changes[0].examples.map((one: { audit_id: string }) => one.audit_id)).toEqual([second]);
    expect([first, second, third]).toEqual(Array(3).fill(expect.any(String)));
    // A row does not contain the query string.
    const untold = await tryOut({ guardrails: rule({ when: 'request.query.exists(n, n == "from")', within: '1h' }) });
    expect(untold.body).toMatchObject({ calls: 4, changed: 0, cannot_tell: 1 });
    // Before the requested days nothing is known.
    world.clock.skewMs = 3 * DAY_MS;
    expect((await tryOut({ days: 4, guardrails: rule({ methods: ['DELETE'], within: '30d' }) })).body).toMatchObject({
      calls: 4,
      changed: 0,
      cannot_tell: 3,
    });
    world.clock.skewMs = 3 * DAY_MS + 60_000;
    expect((await agent.act(EDIT)).status).toBe(200);
    expect((await tryOut({ days: 1, guardrails: rule({ methods: ['DELETE'], within: '1h' }) })).body).toMatchObject({
      calls: 1,
      same: 1,
      cannot_tell: 0,
    });
  });

  test('a call that was sent and not answered counts as made for look-back rules', async () => {
    const agent = await organisation.agent({ policy: await organisation.policy(DEMO_RULES) });
    world.upstream.answer = (_, response) => void response.socket?.destroy();
    expect((await agent.act(READ)).body.error).toBe('upstream_unreachable');
    world.upstream.answer = undefined;
    expect((await agent.act(EDIT)).status).toBe(200);
    const after = { scopes: ['demo:read'], within: '1h' };
    const guardrails = [{ name: 'after-reading', effect: 'deny', scopes: ['demo:write'], after }];
    expect((await tryOut({ guardrails })).body).toMatchObject({ calls: 2, changed: 1 });
  });

  test('guardrails are evaluated for all agents', async () => {
    await given();
    const answer = await tryOut({ guardrails: [{ name: 'no edits', effect: 'deny', methods: ['PATCH'] }] });
    expect(answer.body).toMatchObject({ calls: 4, changed: 1 });
    expect(answer.body.changes[0].examples[0].rule_after).toEqual({ source: 'guardrail', name: 'no edits' });
  });

  test('only the requested days are evaluated', async () => {
    const { policy } = await given();
    world.clock.skewMs = 3 * DAY_MS;
    const rules = { policy, policy_rules: [{ effect: 'deny' }] };
    expect((await tryOut({ ...rules, days: 2 })).body).toMatchObject({ calls: 0, changed: 0, complete: true });
    expect((await tryOut({ ...rules, days: 4 })).body).toMatchObject({ calls: 4, changed: 4 });
  });

  test('invalid rules, and a policy of another organisation, are refused', async () => {
    const { policy } = await given();
    expectEnvelope(
      await tryOut({ policy, policy_rules: [{ effect: 'allow', when: '1 +' }] }),
      400,
      'invalid_governance',
    );
    expectEnvelope(await tryOut({ policy }), 400, 'invalid_request');
    expectEnvelope(await tryOut({}), 400, 'invalid_request');
    const other = await world.demoOrganisation();
    const theirs = await other.policy(DEMO_RULES);
    expectEnvelope(await tryOut({ policy: theirs, policy_rules: [] }), 404, 'not_found');
  });
});
