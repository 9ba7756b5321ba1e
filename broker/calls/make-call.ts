/** A call that may be made: its intent is stored, it is sent, and how it ended is recorded. */
import type { Replay } from '../approvals/replay.ts';
import { mayBeSent } from '../audit/effect.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Claim, Companion, Recorded } from '../audit/recorder.ts';
import { intentRow, rowOf } from '../audit/row.ts';
import { BODY_CUT, ENDED_HERE } from '../egress/unreachable.ts';
import type { LentCredential } from '../policy/access-ended.ts';
import { deedsOf } from '../policy/deeds.ts';
import type { Ask, Facts, Instant, Verdict } from '../policy/facts.ts';
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
import { takeCharges } from './limits.ts';
import { refuse } from './refusal.ts';
import { sendCall } from './send.ts';
import { refuseTool } from './tool-on-file.ts';
import { answerAttributes, requestAttributes } from './trace-attributes.ts';

type Cleared = {
  connected: Extract<Connected, { ok: true }>;
  verdict: Exclude<Verdict, { kind: 'deny' }>;
  ask: Ask;
  /** On which, and of which moment, it was decided. */
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

/**
 * From here on the platform may act: the intent is stored first, and with it what the call uses of a standing approval and of the limits of rules, and that rules can look back at it.
 * Rolled back: nothing was stored or sent.
 */
export async function makeCall(
  services: CallServices,
  call: Call,
  { connected, verdict, ask, facts, now, trials, replay }: Cleared,
): Promise<Recorded<Outcome> | RolledBack<NotClaimed>> {
  const { recorder, broker, earlierCalls } = services;
  const { watch } = call;
  const standing = verdict.kind === 'allow' ? verdict.standing : undefined;
  const charged = (ask.call?.charges?.length ?? 0) > 0;
  const noted = (ask.call?.notes?.length ?? 0) > 0;
  const made = { auditId: call.record.auditId, now };
  let used: CallRecord['standing'];
  let given: Call['standing'];
  let limits: CallRecord['limits'];
  const claim: Claim<RolledBack<NotClaimed>> | undefined =
    standing || charged || noted
      ? async (tx) => {
          const taken = charged ? await takeCharges(tx, facts, ask, now) : undefined;
          if (taken instanceof RolledBack) return taken;
          limits = taken;
          if (noted) await earlierCalls.note(tx, facts, ask, made);
          if (standing) {
            const { id } = standing;
            const place = { organisation_id: call.record.organisationId, id };
            const use = await useStandingApproval(tx, place, broker.clock());
            if (use === undefined) return rollback('nothing_left');
            used = { id, left: use.uses_left };
            given = { id, decided_at: new Date(use.created_at).toISOString(), how: use.decided_how };
          }
          return { flags: { ...(used && { standing_approval: used }), ...(limits && { limits }) } };
        }
      : undefined;
  const beforeEnd = ask.call?.earlier && (() => earlierCalls.meanwhile(facts, ask));
  const send = async (makeDurable: () => Promise<void>): Promise<Recorded<Outcome>> => {
    if (noted) earlierCalls.noted(facts, ask, made);
    const allowed = { ...connected, verdict, ask, isApproved: replay !== undefined, standing };
    const isLookedBackAt = (ask.call?.kinds?.length ?? 0) > 0;
    const endNoting = isLookedBackAt ? earlierCalls.whileRead(facts, ask, made.auditId) : undefined;
    const sending = { ...call, makeDurable, mask: verdict.mask, standing: given, ...(beforeEnd && { beforeEnd }) };
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
    const more = {
      ...(used && { standing: used }),
      ...(limits && { limits }),
      ...(forwarded.refreshUnavailable && { refreshUnavailable: true }),
      ...(accessEnded && { accessEnded }),
    };
    const sentCall = withRecord(call, more);
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
    const { platform } = connected;
    const failure = platformFailure(outcome);
    if (mayBeSent(outcome) || outcome.kind === 'unreachable')
      broker.metrics.upstream(call.action.platform, ms, failure);
    step?.set(answerAttributes(outcome));
    step?.end(failure ?? (outcome.kind === 'unreachable' ? outcome.code : undefined));
    const memory = services.deeds.toRemember(outcome, familyOf(call.who), () =>
      deedsOf(call.action.platform, platform.rules, present(ask.call, 'call')),
    );
    const isAsked = replay !== undefined || ask.call?.firstTimes !== undefined;
    const recorded = await watch.record(() =>
      recordOutcome(services, outcome, replay, {
        asking: sentCall,
        companion: isAsked ? memory?.companion : undefined,
      }),
    );
    if (isAsked) memory?.keep();
    else memory?.writeSoon();
    return recorded;
  };
  // What a person approved is made, and nobody reads its answer meanwhile.
  if (replay === undefined)
    call.lease.allowed = {
      agentId: call.who.agent.agent_id,
      source: call.who.source,
      platformId: ask.platformId,
      scope: ask.scope,
      ...(ask.connectionId !== undefined && { connectionId: ask.connectionId }),
      through: connected.connection.id,
      lent: lentCredentials(call, connected),
    };
  const isRead = call.git ? isReadStep(call.git.step) : call.raw && call.action.method === 'GET';
  const isStreamed = call.taker !== undefined && !isRead;
  const intent = intentRow(call.record, call.taker !== undefined);
  return await watch.intend((stored) =>
    recorder.intend(
      intent,
      (makeDurable) => {
        stored();
        return send(makeDurable);
      },
      { companion: replay?.companion, claim, isStreamed, ...(isRead && { isRead }) },
    ),
  );
}

/** What kept the broker, or its client, from having an answer says nothing about the platform. */
const OURS: ReadonlySet<string> = new Set([
  ...ENDED_HERE,
  'bad_request',
  'address_refused',
  'busy',
  'body_gone',
  ...BODY_CUT,
]);

/** Why an outcome is a failure of the platform, for the metrics; undefined: it is none. */
function platformFailure(outcome: Outcome): string | undefined {
  if (outcome.kind === 'unreachable') return OURS.has(outcome.code) ? undefined : outcome.code;
  return 'upstreamStatus' in outcome && isFailureOf(outcome.upstreamStatus) ? 'status_5xx' : undefined;
}

/** What belongs to an outcome that is put on record. `asking`: the call, for which a consent is asked if one helps; `companion`: is stored with it. */
type With = { asking?: Call; companion?: Companion | undefined };

/** Puts an outcome on record; only then it can be answered. */
export const recordOutcome = (
  services: CallServices,
  outcome: Outcome,
  replay: Replay | undefined,
  { asking, companion }: With = {},
): Promise<Recorded<Outcome>> => {
  // Nobody reads the answer of a replay.
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
  return async (...state) => {
    await one(...state);
    await other(...state);
  };
}
