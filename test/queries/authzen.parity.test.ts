/**
 * AZ-03: AuthZEN and TRQP return the decision of a governed call, tested over HTTP on generated states. That the decision function answers a standing
 * question consistently with calls is tested in policy/decide.properties.test.ts, too.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { putGrant } from '../../broker/store/agents.ts';
import { putAgentsStopped } from '../../broker/store/agents-stopped.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { COVERED, constraints, guardRules, policyRules, SCOPES, some } from '../policy/arbitraries.ts';
import type { Answer, TestAgent } from '../world/agent.ts';
import { putChild } from '../world/child.ts';
import { auditIdOf } from '../world/evidence.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation } from '../world/world.ts';

const MANIFEST = {
  scopes: {
    'crm:contacts.read': ['GET /contacts', 'GET /contacts/*'],
    'crm:contacts.write': ['POST /contacts', 'PATCH /contacts/*'],
    'crm:messages.send': ['POST /messages'],
    'crm:admin': ['GET /contacts/export', 'DELETE /contacts/*', 'GET /admin/**'],
    'crm:ghost': [],
  },
  recipients: { 'POST /messages': ['/to'] },
};

const hour = 3_600_000;
/** Undefined, except once in so many cases. */
const once = <T>(value: fc.Arbitrary<T>, inSoMany: number) =>
  fc.oneof({ weight: inSoMany - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
/** Milliseconds from now; null: never. */
const ends = fc.oneof({ weight: 10, arbitrary: some(null, hour) }, { weight: 1, arbitrary: some(-1_000) });
const grantTerms = fc.record({
  scopes: fc.subarray(SCOPES, { minLength: 3 }),
  requireApproval: fc.oneof({ weight: 5, arbitrary: some(0 as const) }, { weight: 1, arbitrary: some(1 as const) }),
  ends,
  constraints: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: constraints }),
});
/** By connection: the default one, or the second. Mostly there is a grant. */
const grantsOf = fc.record({
  main: fc.option(grantTerms, { nil: undefined, freq: 8 }),
  second: once(grantTerms, 2),
});
const alive = fc.oneof(
  { weight: 14, arbitrary: some('active' as const) },
  { weight: 1, arbitrary: some('suspended' as const, 'revoked' as const) },
);
const ALLOW_ALL = { effect: 'allow' as const };
const state = fc.record({
  status: fc.oneof(
    { weight: 12, arbitrary: alive },
    { weight: 1, arbitrary: some('pending' as const, 'pending_bind' as const) },
  ),
  ends,
  policy: fc.oneof(
    { weight: 6, arbitrary: policyRules.map((rules) => [ALLOW_ALL, ...rules]) },
    { weight: 2, arbitrary: policyRules },
    {
      weight: 3,
      arbitrary: fc.constant([ALLOW_ALL, { effect: 'require_approval' as const, scopes: ['crm:*.write'] }]),
    },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  guardrails: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: guardRules },
    {
      weight: 1,
      arbitrary: some('require_approval' as const, 'deny' as const).map((effect) => [
        { name: 'g', effect, scopes: ['crm:messages.*'] },
      ]),
    },
  ),
  allStopped: fc.oneof({ weight: 14, arbitrary: some(false) }, { weight: 1, arbitrary: some(true) }),
  platformOff: fc.oneof({ weight: 12, arbitrary: some(0 as const) }, { weight: 1, arbitrary: some(1 as const) }),
  grants: grantsOf,
  breaker: once(
    fc.record({
      cause: some('breaker_auth_failure' as const, 'breaker_api_error' as const, 'breaker_upstream_failure' as const),
      state: some('open', 'half_open', 'trial_out'),
    }),
    8,
  ),
  parent: once(fc.record({ status: alive, ends, grants: grantsOf }), 4),
  asks: fc.array(
    fc.record({
      operation: some(...COVERED),
      otherScope: once(some(...SCOPES), 5),
      second: some(false, false, true),
    }),
    { minLength: 2, maxLength: 3 },
  ),
});
type State = typeof state extends fc.Arbitrary<infer S> ? S : never;

/** The decision and reason in a comparable form. */
type Came = { kind: 'allow' | 'hold' | 'deny'; reason: string };
/** Reasons that only a concrete call can have. */
const CONCRETE = ['endpoint_scope_mismatch', 'recipient_not_allowed', 'repo_not_allowed'];
const OF_RULES = [
  'denied_by_policy',
  'denied_by_guardrail',
  'approval_required_by_policy',
  'approval_required_by_guardrail',
];

/** Returns the reasons that a call may have instead: when it is refused anyway, a rule that depends on the call may be evaluated first. */
const EARLIER = (reason: string): string[] => {
  const order = ['denied_by_guardrail', 'denied_by_policy', 'scope_not_granted'];
  return order.slice(0, Math.max(0, order.indexOf(reason === 'no_policy_assigned' ? 'denied_by_policy' : reason)));
};

describe.each(ONE_STORE)(`AZ-03 parity on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);

  const grant = async (organisation: Organisation, agent: TestAgent, grants: State['grants'], second: string) => {
    for (const [name, terms] of Object.entries(grants))
      if (terms)
        await putGrant(world.db, {
          organisation_id: organisation.id,
          id: uuidv4(),
          agent_id: agent.id,
          platform_id: 'crm',
          connection_id: name === 'main' ? null : second,
          scopes: JSON.stringify(terms.scopes),
          constraints: JSON.stringify(terms.constraints),
          require_approval: terms.requireApproval,
          expires_at: terms.ends === null ? null : Date.now() + terms.ends,
          expires_text: null,
          created_at: Date.now(),
        });
  };
  const lifetime = (ms: number | null) => (ms === null ? null : Date.now() + ms);

  /** Stores the state; returns the agent and its second connection. */
  const furnish = async (given: State) => {
    const organisation = await world.organisation({ guardrails: given.guardrails });
    await organisation.platform({ id: 'crm', manifest: MANIFEST });
    const second = await organisation.connection('crm', { isDefault: false });
    const policy = given.policy && (await organisation.policy(given.policy));
    let parent: TestAgent | undefined;
    if (given.parent) {
      const { status, ends, grants } = given.parent;
      parent = await organisation.agent({ policy, agent: { status, expires_at: lifetime(ends) }, grants: {} });
      await grant(organisation, parent, grants, second);
    }
    const row = { status: given.status, expires_at: lifetime(given.ends) };
    const agent = parent
      ? await putChild(world, organisation, parent, { grants: {}, agent: row })
      : await organisation.agent({ policy, grants: {}, agent: row });
    await grant(organisation, agent, given.grants, second);
    if (given.allStopped) {
      const stop = { at: Date.now(), by: organisation.owner.id, detail: null, agents: 1 };
      await putAgentsStopped(world.db, organisation.id, stop);
    }
    if (given.platformOff) {
      const off = world.db
        .updateTable('platforms')
        .set({ suspended: 1 })
        .where('organisation_id', '=', organisation.id);
      await off.execute();
    }
    if (given.breaker) {
      const { cause, state: is } = given.breaker;
      const now = Date.now();
      const keys = {
        breaker_auth_failure: ['127.0.0.1', '0:0:0:0::/64'],
        breaker_api_error: [''],
        breaker_upstream_failure: ['crm'],
      };
      for (const key of keys[cause])
        await world.db
          .insertInto('breakers')
          .values({
            organisation_id: organisation.id,
            agent_id: agent.id,
            cause,
            key,
            strikes: 50,
            window_start: now - 1_000,
            opened_at: now - 1_000,
            open_until: is === 'open' ? now + hour : now - 500,
            trial_at: is === 'trial_out' ? now : null,
          })
          .execute();
    }
    return { organisation, agent, second };
  };

  const answered = ({ status, body, text }: Answer) => {
    expect(status, text).toBe(200);
    return body;
  };

  /** Returns the outcome of a call, after checking that its answer and its audit row have the same reason. */
  const outcome = async (organisation: Organisation, answer: Answer): Promise<Came> => {
    const { status, body, text } = answer;
    const row = await findAuditRow(world.db, organisation.id, auditIdOf(answer));
    const kinds: Record<number, Came['kind']> = { 200: 'allow', 202: 'hold', 403: 'deny', 409: 'deny' };
    expect(kinds, text).toHaveProperty(String(status));
    const reason = { 403: body.reason, 409: body.error }[status] ?? row!.reason;
    expect(row!.reason).toBe(reason);
    return { kind: kinds[status]!, reason };
  };

  /** Sends the same questions as one batch, by the agent and by an owner. */
  const expectTogether = async (organisation: Organisation, agent: TestAgent, given: State, second: string) => {
    const subject = { type: 'agent', id: agent.agentId };
    const resource = { type: 'platform', id: 'crm' };
    const evaluations = given.asks.map(({ operation, otherScope, second: onSecond }) => ({
      action: { name: otherScope ?? operation[0] },
      ...(onSecond && { context: { connection_id: second } }),
    }));
    const post = async (path: string, body: object) => answered(await agent.post(path, body));
    const alone = [];
    for (const each of evaluations) alone.push(await post('/access/v1/evaluation', { subject, resource, ...each }));
    const list = { subject, resource, evaluations };
    expect(await post('/access/v1/evaluations', list)).toEqual({ evaluations: alone });
    expect(answered(await organisation.ask('POST', '/access/v1/evaluations', list))).toEqual({ evaluations: alone });
  };

  test('AuthZEN, TRQP and the governed call agree on generated states', async () => {
    const met = new Map<string, number>();
    let states = 0;
    await fc.assert(
      fc.asyncProperty(state, async (given) => {
        states++;
        const { organisation, agent, second } = await furnish(given);
        await expectTogether(organisation, agent, given, second);
        for (const { operation, otherScope, second: onSecond } of given.asks) {
          const [covering, method, endpoint] = operation;
          const scope = otherScope ?? covering;
          const connection = onSecond ? { connection_id: second } : {};
          const question = {
            subject: { type: 'agent', id: agent.id },
            action: { name: scope },
            resource: { type: 'platform', id: 'crm' },
            context: connection,
          };
          const said = answered(await agent.post('/v1/authzen/access', question));
          const query = {
            entity_id: agent.agentId,
            authority_id: world.running.broker.did,
            action: scope,
            resource: 'crm',
            context: connection,
          };
          const trqp = answered(await agent.post('/v1/trqp/authorization', query));
          // For the agent, strikes of wrong signatures count by its own address; for an owner, those of any address do.
          expect(answered(await organisation.ask('POST', '/v1/authzen/access', question))).toEqual(said);
          const data = method === 'GET' || method === 'DELETE' ? {} : { data: { to: 'ann@acme.example' } };
          const call = { platform: 'crm', endpoint, method, scope, ...data, ...connection };
          const came = await outcome(organisation, await agent.act(call));

          const { decision, reason, require_approval, context } = said;
          const kind = decision ? 'allow' : require_approval ? 'hold' : 'deny';
          expect([trqp.authorized, trqp.context.decision]).toEqual([
            decision,
            { allow: 'allow', hold: 'require_approval', deny: 'deny' }[kind],
          ]);
          const verbatim = decision ? reason : trqp.message;
          expect(reason).toBe({ agent_revoked: 'revoked', agent_inactive: 'denied' }[verbatim as string] ?? verbatim);
          expect(trqp.context.conditional).toBe(context.conditional);

          const where = JSON.stringify({ said, came, call });
          const ofRules = [...OF_RULES, 'no_policy_assigned', 'scope_not_granted', ...CONCRETE];
          if (scope !== covering) {
            // The operation is not in the scope: the call is refused in any case, possibly by rules that name its endpoint.
            expect(came.kind, where).toBe('deny');
            if (kind === 'deny' && !ofRules.includes(verbatim)) expect(came.reason, where).toBe(verbatim);
            else expect(ofRules, where).toContain(came.reason);
          } else if (kind === 'deny') {
            expect(came.kind, where).toBe('deny');
            expect([verbatim, ...EARLIER(verbatim)], where).toContain(came.reason);
          } else if (CONCRETE.includes(came.reason)) expect(came.kind, where).toBe('deny');
          else if (!context.conditional) expect(came, where).toEqual({ kind, reason: verbatim });
          else {
            if (kind === 'hold') expect(came.kind, where).not.toBe('allow');
            if (came.kind !== kind) expect(OF_RULES, where).toContain(came.reason);
          }
          for (const what of [`said ${reason}`, `came ${came.reason}`]) met.set(what, (met.get(what) ?? 0) + 1);
          if (context.conditional) met.set('conditional', (met.get('conditional') ?? 0) + 1);
        }
      }),
      MANY
        ? {
            numRuns: Number(process.env.STATES ?? sized(40, 120)),
            endOnFailure: true,
            interruptAfterTimeLimit: 120_000,
          }
        : { numRuns: 50, seed: 2, endOnFailure: true },
    );
    // A very slow machine runs out of time before all reasons have occurred.
    if (!MANY || states >= 200) expect([...met.keys()]).toEqual(expect.arrayContaining(OFTEN));
    if (states >= 500) expect([...met.keys()]).toEqual(expect.arrayContaining(ALWAYS));
  }, 900_000);
});

/** CI uses other states each time, and a thorough run three times as many; a slow machine tests as many as it can. */
const MANY = process.env.CI !== undefined || process.env.ALL_TESTS !== undefined;
const said = (...reasons: string[]) => reasons.map((reason) => `said ${reason}`);
/** Reasons that must have occurred for the test to be meaningful; with very many states, those of ALWAYS, too. */
const OFTEN = [
  ...said('approved', 'denied_by_policy', 'denied_by_guardrail', 'revoked', 'agent_suspended', 'no_permission_record'),
  ...said('grant_expired', 'scope_not_granted', 'circuit_breaker_open', 'approval_required_by_policy'),
  ...['conditional', 'came approved', 'came approval_required_by_policy'],
];
const ALWAYS = said('denied', 'platform_suspended', 'no_policy_assigned', 'approval_required_by_guardrail').concat(
  said('approval_required_by_grant'),
  'came approval_required_by_grant',
);
