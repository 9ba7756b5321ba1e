/**
 * A call from facts to outcome (specification, Governed call): read, look at its tool, decide, connect, hold or send. Each step
 * answers the call with what it found, or the outcome that ends it.
 */
import { requestHash, requestOf } from '../approvals/held-request.ts';
import { hold, MAX_PENDING } from '../approvals/hold.ts';
import type { Replay } from '../approvals/replay.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import { piiOfRequest } from '../audit/pii.ts';
import type { Recorded } from '../audit/recorder.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import type { CallLease } from '../egress/call-budget.ts';
import { decide } from '../policy/decide.ts';
import { type Instant, UnreadBody } from '../policy/facts.ts';
import { ConcurrentUpdate } from '../store/store-fault.ts';
import { RolledBack } from '../store/transaction.ts';
import { CallWatch } from '../telemetry/call-watch.ts';
import type { Action } from '../wire/action.ts';
import { closeByDecision, releaseTrials, takeTrials } from './breakers.ts';
import { beginCall, beginRecord, type Call, decidedBy, familyOf, withRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { callerOfCall, type Identify, recordedCaller } from './caller.ts';
import { connect } from './connect.ts';
import { decideCall } from './decide-call.ts';
import { withPast } from './earlier-calls.ts';
import { baseUrlOf } from './forward.ts';
import { type GitRequest, gitRecord } from './git-request.ts';
import { makeCall, recordOutcome } from './make-call.ts';
import { misread } from './misread.ts';
import { isLong, type RawRequest } from './raw-request.ts';
import { inferScope, naming } from './raw-scope.ts';
import { askOf, readCall } from './read-call.ts';
import { notAsApproved, refuse, tooLong } from './refusal.ts';
import { reloadPrincipal } from './reload.ts';
import { sentenceOfCall } from './sentence-of-call.ts';
import type { StreamTaker } from './streamed.ts';
import { quarantine, refuseTool, toolOnFile, whyQuarantined, withEffect } from './tool-on-file.ts';
import { toolPreflight } from './tool-preflight.ts';
import { callAttributes } from './trace-attributes.ts';

/** What a door may bring beside the action. */
export type FromDoor = {
  /** Of the budget, to be released by the door when the answer has been taken; without one the answer is given up here. */
  lease?: CallLease | undefined;
  /** Of a door that passes answers on as they come. */
  taker?: StreamTaker | undefined;
  /** Of the git door, which has a taker, too. */
  git?: GitRequest | undefined;
  /** Of the raw door: the request as its client wrote it, whose scope is found by its endpoint. */
  raw?: RawRequest | undefined;
  /** The trace context that came with the request. */
  traceparent?: string | undefined;
  /** Aborted when whoever asked has left; of streamed calls. */
  left?: AbortSignal | undefined;
};

/** `now`: the moment at which the call is decided. `identify`: who the caller is; asked only where that counts. */
export type ActOptions = FromDoor & {
  identify?: Identify;
  correlationId: string;
  auditId?: string;
  now?: Instant;
  replay?: Replay;
};

/** `joined`: the same request is held already, and nothing was recorded: whoever asked waits for that one. */
export type Acted = Recorded<Outcome> | 'joined';

/** A call on the facts of one moment. */
type Attempt = FromDoor & {
  identify?: Identify;
  who: AgentPrincipal;
  now: Instant;
  watch: CallWatch;
  lease: CallLease;
  /** Standing approvals that were found used up, or ended, when they were to be used. */
  spent: Set<string>;
};

/** Whoever changes what decides a call this often while it is decided wants it not to be made. */
const MOST_ATTEMPTS = 10;

/**
 * Decides, and holds, refuses or makes the call. Every answer is recorded before it is given; throws AuditUnavailable
 * when it cannot be, and ConcurrentUpdate when what decides it changed each time.
 */
export async function act(
  services: CallServices,
  who: AgentPrincipal,
  action: Action,
  { correlationId, now = services.broker.clock(), auditId = uuidv7(now), replay, ...door }: ActOptions,
): Promise<Acted> {
  const begun = beginRecord(who, action, { auditId, correlationId, now }, services.broker);
  const watch = new CallWatch(services.broker, door.traceparent);
  const record: CallRecord = {
    ...begun,
    traceId: watch.traceId,
    pii: piiOfRequest(action, door.git?.body !== undefined || door.raw?.judged instanceof UnreadBody),
    git: door.git && gitRecord(door.git),
    approval: replay && { id: replay.approvalId, provenance: replay.provenance },
  };
  const lease = door.lease ?? services.budget.lease(familyOf(who));
  let attempt: Attempt = { ...door, who, now, watch, lease, spent: new Set() };
  let ended: Acted | undefined;
  try {
    for (let made = 0; made < MOST_ATTEMPTS; made++) {
      const done = await attemptCall(services, attempt, action, record, replay);
      if (done !== 'facts_changed') {
        ended = done;
        return done;
      }
      attempt = {
        ...attempt,
        who: await reloadPrincipal(services, who, action.platform),
        now: services.broker.clock(),
      };
    }
  } finally {
    const outcome = ended === 'joined' ? undefined : ended?.value;
    watch.end(() => (outcome ? callAttributes(outcome) : {}));
    lease.endCall();
    if (door.lease === undefined) lease.release();
  }
  throw new ConcurrentUpdate('what decides this call changed each time that it was decided');
}

/** `facts_changed`: while it was decided something changed that decides it; nothing was sent or recorded. */
async function attemptCall(
  services: CallServices,
  given: Attempt,
  asked: Action,
  recorded: CallRecord,
  replay: Replay | undefined,
): Promise<Acted | 'facts_changed'> {
  const { broker } = services;
  const { watch } = given;
  const finish = (outcome: Outcome, asking?: Call) =>
    watch.record(() => recordOutcome(services, outcome, replay, asking && { asking }));
  let isListed = false;
  const { lease, taker, git, raw, left, identify } = given;
  let { who, now } = given;
  let loaded = await services.loadFacts(who.rows, asked.platform, now);
  if (loaded.platform) broker.metrics.platform(asked.platform);
  const parsing = services.longBodies.parsing(familyOf(who));
  const read = await readCall(asked, loaded, { isGit: git !== undefined, raw, parsing });
  if (!read.ok) return await finish(await misread(services, who, asked, recorded, loaded, now, read, replay));
  const { dropped, ...parts } = read.call;
  const inferred = raw && !replay ? inferScope(loaded.facts, askOf(asked, { ...parts, raw })) : undefined;
  const action = inferred ? { ...asked, scope: inferred.scope } : asked;
  const record = inferred ? { ...recorded, asked: { ...recorded.asked, scope: inferred.scope } } : recorded;
  const caller = await callerOfCall(services, { who, action, identify, replay }, loaded.platform?.manifest);
  if (caller === 'late') return 'facts_changed';
  let call: Call = {
    who,
    action,
    ...parts,
    watch,
    lease,
    taker,
    git,
    raw,
    left,
    caller,
    record: { ...record, path: parts.path, droppedHeaders: dropped, caller: recordedCaller(caller) },
  };
  // A header that the platform takes for itself since then would be left out: not what was shown.
  if (replay && requestHash(requestOf(call)) !== replay.requestHash)
    return await finish(notAsApproved(call, 'request_changed', 'The request would not be sent as it was approved.'));

  const plain = await services.deeds.withFirstTimes(loaded.facts, askOf(action, call));
  let onFile = await toolOnFile(services, who.agent.organisation_id, loaded.platform, plain);
  if (onFile) {
    const preflight = await toolPreflight(services, call, { loaded, onFile, ask: plain, now, replay });
    if (preflight.kind === 'facts_changed') return 'facts_changed';
    if (preflight.kind === 'failed') return await finish(preflight.outcome, call);
    if (preflight.kind === 'listed') {
      isListed = true;
      // Only now is it known what the tool does, and it may be two minutes later: nothing of before counts.
      ({ who, now } = preflight);
      loaded = await services.loadFacts(who.rows, action.platform, now);
      onFile = await toolOnFile(services, who.agent.organisation_id, loaded.platform, plain);
      call = { ...call, who };
    }
  }

  const told = withEffect(isListed ? await services.deeds.withFirstTimes(loaded.facts, plain) : plain, onFile);
  const { policy, guardrails } = loaded.facts;
  const effect = guardrails.readsPast || policy?.readsPast ? await withPast(services, loaded.facts, told, now) : told;
  // A replay has its own approval, and uses up nothing else.
  const { verdict: decided, ask } = watch.decide(() =>
    replay
      ? { verdict: decide(loaded.facts, effect, now), ask: effect }
      : decideCall(loaded.facts, call, { ask: effect, onFile, spent: given.spent }, now),
  );
  const verdict = inferred && decided.kind === 'deny' ? naming(decided, inferred) : decided;
  call = withRecord(call, { decided: decidedBy(verdict, loaded) });
  if (verdict.unread && raw && isLong(raw.body)) return await finish(tooLong(call));
  if (verdict.kind === 'deny') return await finish(await refuse(services, call, verdict));
  // Of a replay nothing was signed.
  if (loaded.facts.breakers.length > 0 && !replay) await closeByDecision(services, who, loaded.facts.breakers);
  const connected = await connect(services, call, loaded, verdict.grant);
  call = connected.call;
  if (!connected.ok) return await finish(connected.outcome, call);
  if (replay && replay.connectionId !== null && connected.connection.id !== replay.connectionId)
    return await finish(notAsApproved(call, 'connection_changed', 'It would go through another connection now.'));
  const address = () => baseUrlOf(connected.platform, call);
  if (replay?.address !== undefined && address() !== replay.address)
    return await finish(
      notAsApproved(
        call,
        'request_changed',
        `It would be sent to ${address()} now, and was approved for ${replay.address}.`,
      ),
    );
  // Nothing was on file, and the preflight saw no reason to ask: what decides the call is another now.
  if (onFile?.isFirst && !isListed) return 'facts_changed';
  const quarantined =
    onFile && (whyQuarantined(onFile) ?? (onFile.isFirst ? quarantine(onFile.tool, undefined) : undefined));
  if (quarantined !== undefined) return await finish(refuseTool(call, verdict, quarantined));
  if (verdict.kind === 'hold' && (git || (raw && isLong(raw.body))))
    return await finish({ kind: 'cannot_hold', call: call.record });
  if (verdict.kind === 'hold' && !replay) {
    const { basis, decideIn } = verdict;
    const sentence = sentenceOfCall(loaded, ask, onFile);
    const held = await watch.record(
      () => hold(services, { ...call, address: address(), basis, decideIn, sentence }),
      'hold',
    );
    if (!(held instanceof RolledBack)) return held;
    if (held.reason === 'agent_ended') return 'facts_changed';
    if (held.reason === 'joined') return 'joined';
    return await finish({ kind: 'too_many_pending', limit: MAX_PENDING, call: call.record });
  }
  const begun = await beginCall(call, replay !== undefined);
  if (begun === 'too_many') return await finish({ kind: 'too_many_calls', call: call.record });
  // It keeps its place, and is decided again.
  if (begun === 'after_wait') return 'facts_changed';
  const trials = await takeTrials(broker, who, loaded.facts, action.platform, now);
  if (trials === undefined) return 'facts_changed';
  const making = makeCall(services, call, { connected, verdict, ask, facts: loaded.facts, now, trials, replay });
  const sent = await (trials.length > 0 ? making.finally(() => releaseTrials(broker, trials)) : making);
  if (!(sent instanceof RolledBack)) return sent;
  if (sent.reason === 'nothing_left' && verdict.kind === 'allow' && verdict.standing)
    given.spent.add(verdict.standing.id);
  return 'facts_changed';
}
