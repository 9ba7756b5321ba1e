/**
 * One attempt at a call, on facts of one moment (specification, Governed call): read it, look up its tool, decide, connect, hold or send.
 * Each step returns its result, or an Ended that ends the attempt.
 */
import { requestHash, requestOf, sentOtherwise } from '../approvals/held-request.ts';
import { hold, MAX_PENDING } from '../approvals/hold.ts';
import type { Replay } from '../approvals/replay.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Recorded } from '../audit/recorder.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { CallLease } from '../egress/call-lease.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, Instant, Verdict } from '../policy/facts.ts';
import { RolledBack } from '../store/transaction.ts';
import type { CallWatch } from '../telemetry/call-watch.ts';
import type { Action } from '../wire/action.ts';
import { closeByDecision, releaseTrials, takeTrials } from './breakers.ts';
import { beginCall, type Call, decidedBy, holderOf, withRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { callerOfCall, recordedCaller } from './caller.ts';
import { type Connected, connect } from './connect.ts';
import { decideCall } from './decide-call.ts';
import { withPast } from './earlier-calls.ts';
import type { EntryPointInput } from './entry-point-input.ts';
import { destinationOf } from './forward.ts';
import { makeCall, recordOutcome } from './make-call.ts';
import { refuseTool, type ToolOnFile, toolOnFile, whyAbsent, whyQuarantined, withEffect } from './mcp/tool-on-file.ts';
import { toolPreflight } from './mcp/tool-preflight.ts';
import { misread } from './misread.ts';
import { isLong } from './raw-request.ts';
import { type InferredScope, inferScope, naming } from './raw-scope.ts';
import { askOf, readCall } from './read-call.ts';
import { notAsApproved, refuse, tooFewApproved, tooLong } from './refusal.ts';
import { sentenceOfCall } from './sentence-of-call.ts';

/** `joined`: the same request is already held and nothing was recorded; the caller waits for the held one. */
export type Acted = Recorded<Outcome> | 'joined';

/** A call with the facts of one moment. */
export type Attempt = EntryPointInput & {
  who: AgentPrincipal;
  now: Instant;
  asked: Action;
  /** The call's record before the request is parsed. */
  record: CallRecord;
  replay: Replay | undefined;
  watch: CallWatch;
  lease: CallLease;
  /** Standing approvals that turned out to be used up or ended when this call tried to use them. */
  spent: Set<string>;
};

/** An outcome that is not recorded yet. `asking`: the call, for which consent is requested when consent helps. */
type Unrecorded = { outcome: Outcome; asking?: Call };

/**
 * What ends an attempt. `facts_changed`: facts changed while the call was decided; nothing was sent or recorded, and the call is decided
 * again.
 */
class Ended {
  readonly as: Unrecorded | { acted: Acted } | 'facts_changed';
  constructor(as: Ended['as']) {
    this.as = as;
  }
}

const FACTS_CHANGED = new Ended('facts_changed');
const endWith = (outcome: Outcome, asking?: Call): Ended => new Ended({ outcome, ...(asking && { asking }) });

/** Makes one attempt. Its outcome is recorded before it is returned. */
export async function attemptCall(services: CallServices, attempt: Attempt): Promise<Acted | 'facts_changed'> {
  const { as: end } = await takeSteps(services, attempt);
  if (end === 'facts_changed') return end;
  if ('acted' in end) return end.acted;
  const { outcome, asking } = end;
  return await attempt.watch.record(() => recordOutcome(services, outcome, attempt.replay, asking && { asking }));
}

async function takeSteps(services: CallServices, attempt: Attempt): Promise<Ended> {
  const read = await readStep(services, attempt);
  if (read instanceof Ended) return read;
  const known = await toolStep(services, attempt, read);
  if (known instanceof Ended) return known;
  const decided = await decideStep(services, attempt, known);
  if (decided instanceof Ended) return decided;
  const connected = await connectStep(services, attempt, decided);
  if (connected instanceof Ended) return connected;
  const { verdict } = connected;
  if (verdict.kind === 'hold' && !attempt.replay) return await holdStep(services, attempt, { ...connected, verdict });
  return await sendStep(services, attempt, connected);
}

type Read = { call: Call; loaded: LoadedFacts; inferred: InferredScope | undefined };

/** Parses the request into a call and loads the facts that decide it. */
async function readStep(services: CallServices, attempt: Attempt): Promise<Read | Ended> {
  const { who, now, asked, record: recorded, replay, watch, lease, taker, git, raw, left, identify } = attempt;
  const loaded = await services.loadFacts(who.rows, now);
  if (loaded.platform) services.broker.metrics.platform(asked.platform, who.agent.organisation_id);
  const parsing = services.longBodies.parsing(holderOf(who), lease);
  const read = await readCall(asked, loaded, { isGit: git !== undefined, raw, parsing });
  if (!read.ok) return endWith(await misread(services, who, asked, recorded, loaded, now, read, replay));
  const { dropped, ...parts } = read.call;
  const inferred = raw && !replay ? inferScope(loaded.facts, askOf(asked, { ...parts, raw })) : undefined;
  const action = inferred ? { ...asked, scope: inferred.scope } : asked;
  const record = inferred ? { ...recorded, asked: { ...recorded.asked, scope: inferred.scope } } : recorded;
  const caller = await callerOfCall(services, { who, action, identify, replay }, loaded.platform?.manifest);
  if (caller === 'late') return FACTS_CHANGED;
  const call: Call = {
    ...{ who, action, ...parts, watch, lease, taker, git, raw, left, caller },
    record: { ...record, path: parts.path, droppedHeaders: dropped, caller: recordedCaller(caller) },
  };
  // A header that the platform's entry has since reserved would be dropped: the request would differ from the approved one.
  if (replay && requestHash(requestOf(call)) !== replay.requestHash)
    return endWith(
      notAsApproved(call, 'request_changed', 'The request that would be sent now differs from the approved one.'),
    );
  return { call, loaded, inferred };
}

/** `now` and `ask` are as of after the tool list was fetched, if it was. `isListed`: the server was asked for its tools. */
type Known = Read & { now: Instant; ask: Ask; onFile: ToolOnFile | undefined; isListed: boolean };

/** Looks up what the called tool does; asks the MCP server for its tools when that is unknown. */
async function toolStep(
  services: CallServices,
  attempt: Attempt,
  { call, loaded, inferred }: Read,
): Promise<Known | Ended> {
  const { replay, now } = attempt;
  const { who, action } = call;
  const organisationId = who.agent.organisation_id;
  const ask = await services.seenValues.withFirstTimes(loaded.facts, askOf(action, call));
  const toolless = { call, loaded, inferred, now, ask, onFile: undefined, isListed: false };
  if (loaded.platform?.rules.kind !== 'mcp') return toolless;
  const onFile = await toolOnFile(services, organisationId, loaded.platform, ask);
  if (!onFile) return toolless;
  const asIs = { ...toolless, ask: withEffect(ask, onFile), onFile };
  const preflight = await toolPreflight(services, call, { loaded, onFile, ask, now, replay });
  if (preflight.kind === 'facts_changed') return FACTS_CHANGED;
  if (preflight.kind === 'failed') return endWith(preflight.outcome, call);
  if (preflight.kind === 'unneeded') return asIs;
  // The tool's effect is known only now, up to two minutes later: load all facts again.
  const after = await services.loadFacts(preflight.who.rows, preflight.now);
  const listed = await toolOnFile(services, organisationId, after.platform, ask);
  return {
    call: { ...call, who: preflight.who },
    loaded: after,
    inferred,
    now: preflight.now,
    ask: withEffect(await services.seenValues.withFirstTimes(after.facts, ask), listed),
    onFile: listed,
    isListed: true,
  };
}

type DecidedCall = Known & { verdict: Exclude<Verdict, { kind: 'deny' }> };

async function decideStep(services: CallServices, attempt: Attempt, known: Known): Promise<DecidedCall | Ended> {
  const { watch, replay, raw, spent } = attempt;
  const { loaded, inferred, onFile, now } = known;
  const { facts } = loaded;
  const isPastRead = facts.guardrails.readsPast || facts.policy?.readsPast;
  const withHistory = isPastRead ? await withPast(services, facts, known.ask, now) : known.ask;
  // A replay uses its own approval, never a standing approval.
  const { verdict: decided, ask } = await services.decisions.run(known.call.who.agent.organisation_id, () =>
    watch.decide(() =>
      replay
        ? { verdict: decide(facts, withHistory, now), ask: withHistory }
        : decideCall(facts, known.call, { ask: withHistory, onFile, spent }, now),
    ),
  );
  const verdict = inferred && decided.kind === 'deny' ? naming(decided, inferred) : decided;
  const call = withRecord(known.call, { decided: decidedBy(verdict, loaded) });
  if (verdict.unread && raw && isLong(raw.body)) return endWith(tooLong(call));
  if (verdict.kind === 'deny') return endWith(await refuse(services, call, verdict));
  const lacking = replay && tooFewApproved(call, verdict, replay.provenance);
  if (lacking) return endWith(lacking);
  // A replay carries no agent signature, so it proves nothing to the breakers.
  if (facts.breakers.length > 0 && !replay) await closeByDecision(services, call.who, facts.breakers);
  return { ...known, call, ask, verdict };
}

type Ready = DecidedCall & { connected: Extract<Connected, { ok: true }> };

/** Finds the connection of the call, and checks that the request to be sent still is the one that was decided or approved. */
async function connectStep(services: CallServices, attempt: Attempt, decided: DecidedCall): Promise<Ready | Ended> {
  const { replay, git, raw } = attempt;
  const { verdict, onFile, isListed } = decided;
  const connected = await connect(services, decided.call, decided.loaded, verdict);
  const { call } = connected;
  if (!connected.ok) return endWith(connected.outcome, call);
  if (replay && replay.connectionId !== null && connected.connection.id !== replay.connectionId)
    return endWith(notAsApproved(call, 'connection_changed', 'The call would now use another connection.'));
  const changed = replay && sentOtherwise(replay.destination, destinationOf(connected.platform, call));
  if (changed !== undefined) return endWith(notAsApproved(call, 'request_changed', changed));
  // No tool was on file, and the preflight had no reason to list: the facts changed in between.
  if (onFile?.isFirst && !isListed) return FACTS_CHANGED;
  // A call that is sent lists the tools first: what the server has now counts.
  const isHeld = verdict.kind === 'hold' && !replay;
  const quarantined =
    onFile && (whyQuarantined(onFile) ?? (isListed || isHeld ? whyAbsent(onFile, isListed) : undefined));
  if (quarantined !== undefined) return endWith(refuseTool(call, verdict, quarantined));
  if (verdict.kind === 'hold' && (git || (raw && isLong(raw.body))))
    return endWith({ kind: 'cannot_hold', call: call.record });
  return { ...decided, call, connected };
}

/** Holds the call for a decision by an owner. */
async function holdStep(
  services: CallServices,
  { watch }: Attempt,
  ready: Ready & { verdict: Extract<Verdict, { kind: 'hold' }> },
): Promise<Ended> {
  const { call, loaded, ask, onFile } = ready;
  const sentence = sentenceOfCall(loaded, ask, onFile);
  const held = await watch.record(
    () =>
      hold(services, {
        ...call,
        destination: destinationOf(ready.connected.platform, call),
        verdict: ready.verdict,
        sentence,
      }),
    'hold',
  );
  if (!(held instanceof RolledBack)) return new Ended({ acted: held });
  if (held.reason === 'agent_ended') return FACTS_CHANGED;
  if (held.reason === 'joined') return new Ended({ acted: 'joined' });
  return endWith({ kind: 'too_many_pending', limit: MAX_PENDING, call: call.record });
}

/** Takes a slot in the call budget and the trials of half-open breakers, then makes the call. */
async function sendStep(services: CallServices, { replay, spent }: Attempt, ready: Ready): Promise<Ended> {
  const { broker } = services;
  const { call, connected, verdict, ask, now } = ready;
  const { facts } = ready.loaded;
  const begun = await beginCall(call, replay !== undefined);
  if (begun === 'too_many') return endWith({ kind: 'too_many_calls', call: call.record });
  // The call keeps its slot and is decided again.
  if (begun === 'after_wait') return FACTS_CHANGED;
  const trials = await takeTrials(broker, call.who, facts, call.action.platform, now);
  if (trials === undefined) return FACTS_CHANGED;
  const making = makeCall(services, call, { connected, verdict, ask, facts, now, trials, replay });
  const sent = await (trials.length > 0 ? making.finally(() => releaseTrials(broker, trials)) : making);
  if (!(sent instanceof RolledBack)) return new Ended({ acted: sent });
  if (sent.reason === 'nothing_left' && verdict.kind === 'allow' && verdict.standing) spent.add(verdict.standing.id);
  return FACTS_CHANGED;
}
