/** Makes an allowed call: stores its intent, sends it, and records its outcome. */
import type { Replay } from '../approvals/replay.ts';
import { mayBeSent } from '../audit/effect.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Claim, Companion, Recorded } from '../audit/recorder.ts';
import { intentRow, rowOf } from '../audit/row.ts';
import type { CallLease } from '../egress/call-lease.ts';
import { BODY_CUT, ENDED_HERE } from '../egress/unreachable.ts';
import type { LentCredential } from '../policy/access-ended.ts';
import type { Ask, Facts, Instant, Verdict } from '../policy/facts.ts';
import { seenValuesOf } from '../policy/seen-values.ts';
import type { StandingApproval } from '../policy/standing-terms.ts';
import { present } from '../runtime/present.ts';
import { useStandingApproval } from '../store/standing-approvals.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { type Call, familyOf, withRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { concludeCall, isFailureOf } from './conclude.ts';
import type { Connected } from './connect.ts';
import { consentHelps } from './consent-helps.ts';
import { asStopped } from './forwarded.ts';
import { isReadStep } from './git-request.ts';
import { chargeLimits } from './limits.ts';
import { refuseTool } from './mcp/tool-on-file.ts';
import { approvalsIn, refuse } from './refusal.ts';
import { sendCall } from './send.ts';
import { answerAttributes, requestAttributes } from './trace-attributes.ts';

type Cleared = {
  connected: Extract<Connected, { ok: true }>;
  verdict: Exclude<Verdict, { kind: 'deny' }>;
  ask: Ask;
  /** The facts that the decision used; `now`: their time. */
  facts: Facts;
  now: Instant;
  trials: Parameters<typeof concludeCall>[2]['trials'];
  replay: Replay | undefined;
};

const lentCredentials = ({ who }: Call, { connection }: Cleared['connected']): LentCredential[] => [
  ...(who.staticKey ? [{ kind: 'static_key', id: who.staticKey.id } as const] : []),
  ...(who.workload ? [{ kind: 'workload', id: who.workload.id } as const] : []),
  ...(who.access ? [{ kind: 'mcp_authorisation', id: who.access.authorisationId } as const] : []),
  ...(connection.personTokens !== undefined ? [{ kind: 'person_tokens', id: connection.personTokens } as const] : []),
];

/** `nothing_left`: the standing approval is used up, or has ended; `limit_reached`: other calls have used up the rest of a limit. */
export type NotClaimed = 'nothing_left' | 'limit_reached';

/** What a call takes of a standing approval and of limits, as stored with its intent. `given`: the approval, as an attestation says it. */
type Taken = Pick<CallRecord, 'standing' | 'limits'> & Partial<{ given: Call['standing'] }>;

/**
 * Makes a call. From here on the platform may act, so the intent is stored first, in one transaction with the use of a standing approval,
 * the charges to limits, and the look-back marks. Rolled back: nothing was stored or sent.
 */
export async function makeCall(
  services: CallServices,
  call: Call,
  cleared: Cleared,
): Promise<Recorded<Outcome> | RolledBack<NotClaimed>> {
  const { replay } = cleared;
  let taken: Taken = {};
  const claim = claimOf(services, call, cleared, (stored) => {
    taken = stored;
  });
  // A replay is not stopped by the access watch: a person approved it, and no client is reading its answer.
  if (replay === undefined) call.lease.allowed = whatAllowed(call, cleared);
  const isRead = call.git ? isReadStep(call.git.step) : call.raw && call.action.method === 'GET';
  const isStreamed = call.taker !== undefined && !isRead;
  const intent = intentRow(call.record, call.taker !== undefined);
  return await call.watch.intend((stored) =>
    services.recorder.intend(
      intent,
      (makeDurable) => {
        stored();
        return sendAndRecord(services, { ...call, makeDurable }, cleared, taken);
      },
      { companion: replay?.companion, claim, isStreamed, ...(isRead && { isRead }) },
    ),
  );
}

const whatAllowed = (call: Call, { connected, ask, verdict: { further } }: Cleared): CallLease['allowed'] => ({
  agentId: call.who.agent.agent_id,
  source: call.who.source,
  ...(call.who.signedWith !== undefined && { signedWith: call.who.signedWith }),
  platformId: ask.platformId,
  scope: ask.scope,
  ...(further && { further }),
  ...(ask.connectionId !== undefined && { connectionId: ask.connectionId }),
  through: connected.connection.id,
  lent: lentCredentials(call, connected),
});

const standingOf = ({ verdict }: Cleared): StandingApproval | undefined =>
  verdict.kind === 'allow' ? verdict.standing : undefined;

const hasAny = (list: readonly unknown[] | undefined): boolean => (list?.length ?? 0) > 0;

/** Returns what to store in the transaction of the intent; `keep` receives what was taken. Undefined when there is nothing to store. */
function claimOf(
  { broker, earlierCalls }: CallServices,
  { record }: Call,
  cleared: Cleared,
  keep: (taken: Taken) => void,
): Claim<RolledBack<NotClaimed>> | undefined {
  const { ask, facts, now } = cleared;
  const standing = standingOf(cleared);
  const isCharged = hasAny(ask.call?.charges);
  const isNoted = hasAny(ask.call?.notes);
  if (!standing && !isCharged && !isNoted) return undefined;
  return async (tx) => {
    const limits = isCharged ? await chargeLimits(tx, facts, ask, now) : undefined;
    if (limits instanceof RolledBack) return limits;
    if (isNoted) await earlierCalls.note(tx, facts, ask, { auditId: record.auditId, now });
    if (!standing) {
      keep({ limits });
      return { flags: { ...(limits && { limits }) } };
    }
    const { id } = standing;
    const use = await useStandingApproval(tx, { organisation_id: record.organisationId, id }, broker.clock());
    if (use === undefined) return rollback('nothing_left');
    const used = { id, left: use.uses_left };
    keep({
      standing: used,
      limits,
      given: { id, decided_at: new Date(use.created_at).toISOString(), how: use.decided_how },
    });
    return { flags: { standing_approval: used, ...(limits && { limits }) } };
  };
}

/** Sends the call, whose intent is stored, and records the outcome. */
async function sendAndRecord(
  services: CallServices,
  call: Call,
  cleared: Cleared,
  taken: Taken,
): Promise<Recorded<Outcome>> {
  const { broker, earlierCalls } = services;
  const { connected, verdict, ask, facts, now, trials, replay } = cleared;
  const { watch, record } = call;
  const made = { auditId: record.auditId, now };
  if (hasAny(ask.call?.notes)) earlierCalls.noted(facts, ask, made);
  const allowed = {
    ...connected,
    verdict,
    ask,
    approvals: replay ? approvalsIn(replay.provenance) : 0,
    standing: standingOf(cleared),
  };
  const endNoting = hasAny(ask.call?.kinds) ? earlierCalls.whileRead(facts, ask, made.auditId) : undefined;
  const beforeEnd = ask.call?.earlier && (() => earlierCalls.meanwhile(facts, ask));
  const sending = { ...call, mask: verdict.mask, standing: taken.given, ...(beforeEnd && { beforeEnd }) };
  const {
    forwarded: sent,
    ms,
    step,
  } = await watch
    .forward(
      (traceparent) => sendCall(services, { ...sending, traceparent }, allowed),
      () => requestAttributes(call, connected.platform.manifest.base_url),
    )
    .finally(endNoting);
  const { forwarded, accessEnded } = asStopped(sent, call.lease.stopped);
  const sentCall = withRecord(call, {
    ...(taken.standing && { standing: taken.standing }),
    ...(taken.limits && { limits: taken.limits }),
    ...(forwarded.refreshUnavailable && { refreshUnavailable: true }),
    ...(accessEnded && { accessEnded }),
  });
  if (forwarded.kind === 'denied_meanwhile') {
    const decided = withRecord(sentCall, { decided: forwarded.decided });
    step?.end();
    const refused = await refuse(services, decided, forwarded.verdict);
    return await watch.record(() => recordOutcome(services, refused, replay));
  }
  const outcome =
    forwarded.kind === 'quarantined'
      ? refuseTool(sentCall, verdict, forwarded.detail)
      : await concludeCall(services, sentCall, { ...connected, trials, forwarded });
  const failure = platformFailure(outcome);
  if (mayBeSent(outcome) || outcome.kind === 'unreachable') broker.metrics.upstream(call.action.platform, ms, failure);
  step?.set(answerAttributes(outcome));
  step?.end(failure ?? (outcome.kind === 'unreachable' ? outcome.code : undefined));
  const memory = services.seenValues.toRemember(outcome, familyOf(call.who), () =>
    seenValuesOf(call.action.platform, connected.platform.rules, present(ask.call, 'call')),
  );
  const isAsked = replay !== undefined || ask.call?.firstTimes !== undefined;
  const companion = isAsked ? memory?.companion : undefined;
  const recorded = await watch.record(() => recordOutcome(services, outcome, replay, { asking: sentCall, companion }));
  if (isAsked) memory?.keep();
  else memory?.writeSoon();
  return recorded;
}

/** Codes whose cause is the broker or its client: they are not failures of the platform. */
const NOT_PLATFORM_FAILURES: ReadonlySet<string> = new Set([
  ...ENDED_HERE,
  'bad_request',
  'address_refused',
  'busy',
  'body_gone',
  ...BODY_CUT,
]);

/** Returns why an outcome is a failure of the platform, for the metrics; undefined when it is not. */
function platformFailure(outcome: Outcome): string | undefined {
  if (outcome.kind === 'unreachable') return NOT_PLATFORM_FAILURES.has(outcome.code) ? undefined : outcome.code;
  return 'upstreamStatus' in outcome && isFailureOf(outcome.upstreamStatus) ? 'status_5xx' : undefined;
}

/** `asking`: the call, for which consent is requested when consent helps; `companion`: stored in the same transaction. */
type With = { asking?: Call; companion?: Companion | undefined };

/** Records an outcome; it may be returned to the client only after that. */
export const recordOutcome = (
  services: CallServices,
  outcome: Outcome,
  replay: Replay | undefined,
  { asking, companion }: With = {},
): Promise<Recorded<Outcome>> => {
  // No client reads the answer of a replay, so it begins no consent.
  const after = asking && !replay ? consentHelps(services, asking, outcome) : undefined;
  return services.recorder.record<Outcome>({
    row: rowOf(outcome),
    value: outcome,
    sent: mayBeSent(outcome),
    companion: both(replay?.companion, companion),
    ...(after && { after }),
  });
};

function both(one: Companion | undefined, other: Companion | undefined): Companion | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    store: async (...state) => (await one.store(...state)) ?? (await other.store(...state)),
    tooLate: async (value) => {
      await one.tooLate?.(value);
      await other.tooLate?.(value);
    },
  };
}
