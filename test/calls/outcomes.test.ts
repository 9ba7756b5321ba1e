/** Every kind of outcome has a row and, at each entry point that can get it, an answer. A new kind does not compile without a case here. */
import { describe, expect, test } from 'vitest';
import { mayBeSent, platformEffectOf } from '../../broker/audit/effect.ts';
import { executionError } from '../../broker/audit/execution-error.ts';
import type {
  CallRecord,
  GitOutcome,
  Outcome,
  OutcomeOf,
  ReplayFailure,
  StreamOutcome,
  WholeOutcome,
} from '../../broker/audit/outcome.ts';
import { mayHaveActed, rowOf } from '../../broker/audit/row.ts';
import { outcomeForAgent } from '../../broker/calls/perform.ts';
import { gitOutcomeReply } from '../../broker/http/git/outcome.ts';
import { outcomeReply } from '../../broker/http/outcome-reply.ts';
import { outcomeRefusal } from '../../broker/http/proxy/refusal.ts';

const ID = '0198c0de-0000-7000-8000-000000000001';
const CALL: CallRecord = {
  auditId: ID,
  correlationId: ID,
  createdAt: 1,
  instanceId: ID,
  organisationId: ID,
  agent: { id: ID, agentId: 'agt_a', parentAgentId: null },
  sessionId: null,
  asked: { platform: 'demo', scope: 'demo:write', method: 'POST' },
  path: '/items',
  droppedHeaders: [],
  pii: null,
  git: undefined,
  decided: undefined,
  connectionId: ID,
  approval: undefined,
  refreshUnavailable: false,
};
const verdict = {
  kind: 'deny',
  reason: 'denied_by_policy',
  detail: 'no',
  matched: [],
} as unknown as OutcomeOf<'denied'>['verdict'];
const bytes = { bytes: 2, sha256: 'x' };
const answer = { dataJson: '{}', upstreamStatus: 200, bytes: 2, redacted: false, failed: false } as const;
const refused = { responsePii: null };

/** Examples of each kind. */
const ENDS: { [Kind in Outcome['kind']]: Omit<OutcomeOf<Kind>, 'kind' | 'call'>[] } = {
  answered: [{ ...answer, contentType: '', encoding: '', location: '', headers: {}, responsePii: null }],
  held: [{ approvalId: ID, expiresAt: 1, sentence: { parts: [] } as never }],
  denied: [{ verdict }],
  invalid: [{ code: 'invalid_endpoint', detail: 'x' }],
  inactive: [{ detail: 'x' }],
  not_connected: [{}],
  consent_required: [{ reason: 'no_caller' }, { reason: 'not_consented', refused }],
  needs_consent: [
    { connectionId: ID, scope: 'a:b' },
    { connectionId: ID, scope: 'a:b', refused },
  ],
  credential_unreadable: [{}],
  reauth_needed: [
    { connectionId: ID, cause: 'expired' },
    { connectionId: ID, cause: 'refused', responsePii: null },
  ],
  too_many_pending: [{ limit: 1 }],
  too_many_calls: [{}],
  request_cut: [{ detail: 'x' }],
  cannot_hold: [{}],
  unreachable: [
    { code: 'refused', detail: 'x', sent: false },
    { code: 'timeout', detail: 'x', sent: true },
  ],
  response_blocked: [{ cause: 'credential_found', upstreamStatus: 200 }],
  streamed: [{ upstreamStatus: 200, ended: 'idle', received: bytes, sent: bytes, redacted: false }],
  not_passed_on: [
    { cause: 'not_found', upstreamStatus: 404 },
    { cause: 'unexpected', upstreamStatus: 500 },
  ],
  not_as_approved: [{ reason: 'request_changed', detail: 'x' }],
};
const ALL = Object.entries(ENDS).flatMap(([kind, ends]) =>
  ends.map((end) => ({ kind, ...end, call: CALL }) as Outcome),
);
const without = <Kept extends Outcome>(...kinds: Exclude<Outcome, Kept>['kind'][]) =>
  ALL.filter(({ kind }) => !kinds.some((one) => one === kind)) as Kept[];
const named = <One extends Outcome>(outcomes: One[]) => outcomes.map((one) => [one.kind, one] as const);

const services = { broker: { baseUrl: 'https://broker.example', clock: () => 1 }, logHeads: { of: () => undefined } };
const CALLER = { kind: 'token', agentId: 'agt_x', baseUrl: services.broker.baseUrl } as const;
const asking = { request: { headers: {} }, who: { agent: { agent_id: CALLER.agentId } } };
const context = { services, correlationId: ID, ...asking } as unknown as Parameters<typeof outcomeRefusal>[0];

describe('an outcome of each kind', () => {
  test.each(named(ALL))('%s has a row', (_kind, outcome) => {
    expect(rowOf(outcome)).toMatchObject({ state: 'final', result: expect.any(String), reason: expect.any(String) });
  });

  const whole = without<WholeOutcome>('streamed', 'cannot_hold', 'not_passed_on', 'not_as_approved');
  test.each(named(whole))('%s is answered by POST /v1/actions', (kind, outcome) => {
    const { status, body } = outcomeReply(context, outcome);
    expect(status >= 400).toBe(kind !== 'answered' && kind !== 'held');
    expect(String(body)).toContain(ID);
  });

  const streams = without<StreamOutcome>('not_passed_on', 'not_as_approved');
  test.each(named(streams))('%s is answered by /proxy', (_kind, outcome) => {
    expect(outcomeRefusal(context, outcome).headers).toMatchObject({ 'X-Svc-Audit-Id': ID });
  });

  const git = without<GitOutcome>('answered', 'response_blocked', 'held', 'too_many_pending', 'not_as_approved');
  test.each(named(git))('%s is answered by /git', (_kind, outcome) => {
    expect(gitOutcomeReply(outcome, 'acme/app', CALLER).status).toBeGreaterThanOrEqual(400);
  });

  const replays = without<ReplayFailure>(
    ...(['answered', 'streamed', 'cannot_hold', 'not_passed_on'] as const),
    ...(['held', 'too_many_pending', 'request_cut'] as const),
  );
  test.each(named(replays))('%s says why a replay failed', (_kind, outcome) => {
    const row = rowOf(outcome);
    expect(executionError(row, outcome).text).toMatch(new RegExp(`^(?:${row.reason}: |outcome unknown: )`));
  });
});

/** What each kind may have changed by a POST, or by a push; for the other kinds nothing was sent. */
const EFFECTS: Partial<Record<Outcome['kind'], string[]>> = {
  answered: ['made'],
  response_blocked: ['made'],
  streamed: ['made'],
  unreachable: ['none', 'unknown'],
};
const PUSHED: typeof EFFECTS = { ...EFFECTS, streamed: ['unknown'], not_passed_on: ['none', 'unknown'] };
const PUSH = { reason: undefined, refs: [{ name: 'refs/heads/main', action: 'create' }], pushOptions: [] } as const;
const ENDED = { reason: 'agent_revoked', detail: 'The agent was revoked' } as const;

describe('what a call may have changed', () => {
  const doubt = /may have been made/;
  test.each([
    ['a POST', EFFECTS, {}],
    ['a push', PUSHED, { git: PUSH }],
    ['a read', {}, { asked: { ...CALL.asked, method: 'GET' } }],
  ] as const)('of %s is the same for outcome, row, agent and owner', (_what, effects: typeof EFFECTS, changes) => {
    for (const [kind, ends] of Object.entries(ENDS))
      ends.forEach((end, i) => {
        const outcome = { kind, ...end, call: { ...CALL, ...changes } } as Outcome;
        const effect = platformEffectOf(outcome);
        expect([kind, effect]).toEqual([kind, effects[outcome.kind]?.[i] ?? 'none']);
        const row = rowOf(outcome);
        expect([kind, mayHaveActed(row)]).toEqual([kind, effect !== 'none']);
        const told = outcomeForAgent({
          ...outcome,
          call: { ...outcome.call, accessEnded: ENDED },
        }) as OutcomeOf<'denied'>;
        expect([kind, doubt.test(told.verdict.detail)]).toEqual([kind, effect !== 'none']);
        if (kind === 'unreachable')
          expect(doubt.test(executionError(row, outcome as ReplayFailure).text)).toBe(effect === 'unknown');
      });
  });

  test('a call that the platform refused was sent and changed nothing', () => {
    const ends = [...ENDS.reauth_needed, ...ENDS.consent_required, ...ENDS.needs_consent].map((_end, i) => i % 2 === 1);
    const outcomes = ALL.filter(({ kind }) => /^(?:reauth_needed|consent_required|needs_consent)$/.test(kind));
    expect(outcomes.map(mayBeSent)).toEqual(ends);
  });

  test('an interrupted push says that it may have taken effect, an interrupted fetch only to retry', () => {
    const [outcome] = ALL.filter(({ kind }) => kind === 'streamed') as OutcomeOf<'streamed'>[];
    if (!outcome) throw new Error('there is one');
    const line = (call: CallRecord) => String(gitOutcomeReply({ ...outcome, call }, 'acme/app', CALLER).body);
    expect(line({ ...CALL, git: PUSH })).toContain(
      'broke off. The push may have been made: fetch before you repeat it.',
    );
    expect(line(CALL)).toContain('broke off. Try again.');
  });
});

test('an entry point accepts only requests whose outcomes it can answer (types)', () => {
  const end = <Kind extends Outcome['kind']>(kind: Kind) => ({ kind, ...ENDS[kind][0], call: CALL }) as OutcomeOf<Kind>;
  const notCalled = () => {
    // @ts-expect-error its client takes no stream
    outcomeReply(context, end('streamed'));
    // @ts-expect-error of git alone
    outcomeRefusal(context, end('not_passed_on'));
    // @ts-expect-error of no code host an answer is read as a whole
    gitOutcomeReply(end('answered'), 'acme/app');
    // @ts-expect-error it has an answer to keep
    executionError(rowOf(end('answered')), end('answered'));
  };
  expect(notCalled).toBeInstanceOf(Function);
});
