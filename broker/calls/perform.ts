/**
 * The use case behind every entry point: a call of an agent, from its request to its answer (specification, Governed call). An entry point
 * parses its transport's request into a CallRequest and writes the outcome in its own format; everything else happens here.
 */

import { platformEffectOf } from '../audit/effect.ts';
import type { GitOutcome, Outcome, StreamOutcome, WholeOutcome } from '../audit/outcome.ts';
import type { Recorded } from '../audit/recorder.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { agentFacts, breakersOf, hasStandingParent } from '../facts/facts.ts';
import type { Identification } from '../people/people.ts';
import type { Instant } from '../policy/facts.ts';
import { haltOf } from '../policy/halt.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import { Action } from '../wire/action.ts';
import { firstProblem } from '../wire/validation.ts';
import { act } from './act.ts';
import { noteAnswerAgain, whyNotAgain } from './answer-again.ts';
import type { Acted } from './attempt.ts';
import { beginRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { inSession, readCaller } from './caller.ts';
import { endedOutcome } from './ended-outcome.ts';
import type { EntryPointInput } from './entry-point-input.ts';
import type { GitRequest } from './git-request.ts';
import { joinFor } from './held-raw.ts';
import { type KeyRefused, type Once, onceForKey, readKey, type StoredResponse } from './idempotency.ts';
import { recordOutcome } from './make-call.ts';
import { type Malformed, recordMalformed } from './malformed.ts';
import { reloadPrincipal } from './reload.ts';
import { refuseUnreviewed, unknownKey } from './restored-store.ts';
import { type JoinsRaced, makeOrWait, type Wait, type Waited } from './wait-for-decision.ts';

/** A request from an entry point. Headers are passed on as the caller sent them, unchecked. */
export type CallRequest = EntryPointInput & {
  asked: { ok: true; action: Action } | ({ ok: false } & Malformed);
  correlationId: string;
  /** `Idempotency-Key`; a list where it was sent more than once. */
  idempotencyKey?: string | readonly string[] | undefined;
  /** `X-Svc-Session`. */
  sessionMarker?: string | readonly string[] | undefined;
  /** Every value of `X-Svc-Caller`. */
  caller?: readonly string[] | undefined;
  /**
   * How long the client can wait for a decision, on entry points that answer with the result of a held call; not with an Idempotency-Key.
   */
  wait?: Wait | undefined;
};

/** For entry points that buffer answers and whose clients poll held calls themselves. */
export type WholeCallRequest = CallRequest & { taker?: undefined; git?: undefined; raw?: undefined; wait?: undefined };

/** For entry points that can stream answers in the platform's own form. */
export type StreamCallRequest = CallRequest & { git?: undefined };

/** For the git entry point. */
export type GitCallRequest = CallRequest & { raw?: undefined; wait?: undefined } & (
    | { git: GitRequest }
    | { asked: { ok: false } }
  );

/** Parses a JSON value as a call, or says what is wrong with it. */
export function checkAction(value: unknown): CallRequest['asked'] {
  const read = Action.safeParse(value);
  return read.success ? { ok: true, action: read.data } : { ok: false, body: value, detail: firstProblem(read.error) };
}

/**
 * Makes a governed call, once per Idempotency-Key. What an entry point passes limits how its calls can end: without a taker no answer is
 * streamed, and a git request is never held or buffered.
 *
 * @param request with `wait`, a held call is waited for: an equal request joins it, and both get its result
 * @param write writes an outcome as the answer of this entry point; with a key, also the answer stored for retries. It gets the outcome
 * that the agent may see: for a call stopped because access ended, the refusal that it would get now. Not called for a held call that was
 * waited for
 * @throws AuditUnavailable when the outcome could not be recorded; then nothing is answered
 * @throws StoreUnreviewed
 */
export async function perform<Answer extends StoredResponse>(
  services: CallServices,
  agent: AgentPrincipal,
  request: WholeCallRequest,
  write: (outcome: WholeOutcome) => Answer,
): Promise<Once<Answer>>;
export async function perform<Answer extends StoredResponse>(
  services: CallServices,
  agent: AgentPrincipal,
  request: GitCallRequest,
  write: (outcome: GitOutcome) => Answer,
): Promise<Once<Answer>>;
export async function perform<Answer extends StoredResponse>(
  services: CallServices,
  agent: AgentPrincipal,
  request: StreamCallRequest,
  write: (outcome: StreamOutcome) => Answer,
): Promise<Once<Answer> | Waited | JoinsRaced>;
export async function perform<Answer extends StoredResponse>(
  services: CallServices,
  agent: AgentPrincipal,
  request: CallRequest,
  writeOwn: (outcome: never) => Answer,
): Promise<Once<Answer> | Waited | JoinsRaced> {
  // Outcomes that only other entry points can get need a taker, git (act, concludeCall) or a replay.
  const write = writeOwn as (outcome: Outcome) => Answer;
  refuseUnreviewed(agent);
  const { asked, correlationId, lease, taker, git, raw, left, traceparent, wait } = request;
  const answered = ({ value }: Recorded<Outcome>): Once<Answer> => ({
    kind: 'answered',
    answer: write(outcomeForAgent(value)),
  });
  const marked = inSession(agent, request.sessionMarker);
  const malformed = (given: Malformed) =>
    recordMalformed(services, marked.ok ? marked.who : agent, given, correlationId);
  if (!asked.ok) return answered(await malformed(asked));
  const caller = readCaller(request.caller, asked.action.caller);
  const key = readKey(request.idempotencyKey);
  const detail = [caller, marked, key].find((part) => !part.ok)?.error;
  if (!caller.ok || !marked.ok || !key.ok)
    return answered(await malformed({ body: asked.action, detail: detail ?? '' }));
  const action = caller.caller === asked.action.caller ? asked.action : { ...asked.action, caller: caller.caller };
  const identity = identifying(services, marked.who, action);
  const began = performance.now();
  const isCompared = (wait ? raw?.join : key.value) !== undefined && !isStopped(marked.who, services.broker.clock());
  const person = isCompared ? await personNamed(identity.identify) : undefined;
  // Fetching an issuer's keys may take seconds: load the agent's facts again after that.
  const isLate = performance.now() - began > LONG_WAIT_MS;
  const who = isLate ? await reloadPrincipal(services, marked.who, action.platform) : marked.who;
  const now = services.broker.clock();
  const options = {
    correlationId,
    now,
    lease,
    taker,
    git,
    raw,
    left,
    traceparent,
    ...identity,
  };
  // A halted agent, or a child whose parent is, is refused even for a call that was answered before.
  const isHalted = isStopped(who, now);
  if (wait) {
    const join = raw?.join && joinFor(raw.join, person);
    const waiting = { wait, join, mayJoin: !isHalted, left, lease };
    const given = { ...options, raw: raw && { ...raw, join } };
    const ended = await makeOrWait(services, who, waiting, () => act(services, who, action, given));
    return 'kind' in ended ? ended : answered(ended);
  }
  if (key.value === undefined || isHalted) return answered(unjoined(await act(services, who, action, options)));
  const same = { ...action, ...(person !== undefined && { caller: person }) };
  const isRead = action.method === 'GET';
  const unknown = isRead ? undefined : unknownKey(services.broker.keysRestoredAt, key.value, now);
  if (unknown !== undefined) {
    const code = 'idempotency_outcome_unknown';
    return await refusedKey(services, who, { body: action, code, detail: unknown }, correlationId);
  }
  const once = await onceForKey(services, who, key.value, { request: same, isRead }, async (auditId) => {
    const { value } = unjoined(await act(services, who, action, { ...options, auditId }));
    const forAgent = outcomeForAgent(value);
    const stored = write(value);
    const isKept = value.kind === 'held' || platformEffectOf(value) !== 'none';
    return { stored, answer: forAgent === value ? stored : write(forAgent), isKept };
  });
  if (once.kind === 'again') {
    const ended = await whyNotAgain(services, who, once.auditId, action.connection_id);
    if (ended) {
      const call = beginRecord(who, action, { auditId: uuidv7(now), correlationId, now }, services.broker);
      return answered(await recordOutcome(services, endedOutcome(call, ended, NOT_REPEATED), undefined));
    }
    await noteAnswerAgain(services, who, once.auditId);
  }
  // The recorded row is of the first call; this is another call and needs its own row.
  if (once.kind !== 'key_refused' || once.code !== 'idempotency_key_reused') return once;
  return await refusedKey(services, who, { body: action, code: once.code, detail: once.detail }, correlationId);
}

const NOT_REPEATED = '; the call was already made, and its answer is not returned now';

/** Records a call that is refused because of its key. */
async function refusedKey(
  services: CallServices,
  who: AgentPrincipal,
  refused: Malformed & Pick<KeyRefused, 'code'>,
  correlationId: string,
): Promise<{ kind: 'key_refused' } & KeyRefused> {
  const { value } = await recordMalformed(services, who, refused, correlationId);
  return { kind: 'key_refused', code: refused.code, detail: refused.detail, auditId: value.call.auditId };
}

/** Identifies the caller at most once, and only when needed. */
function identifying(
  { people }: CallServices,
  { agent }: AgentPrincipal,
  { caller }: Action,
): { identify?: () => Promise<Identification> } {
  if (caller === undefined) return {};
  let identified: Promise<Identification> | undefined;
  return {
    identify: () => {
      identified ??= people.identify(agent.organisation_id, caller);
      return identified;
    },
  };
}

/**
 * Returns a value that identifies the caller when requests are compared, for an Idempotency-Key or a held call. It is derived from the
 * person, so that a new assertion for the same person is the same request.
 */
async function personNamed(identify: (() => Promise<Identification>) | undefined): Promise<string | undefined> {
  const identified = await identify?.();
  return identified?.ok ? identified.who.hash : identified && 'unidentified';
}

/**
 * Returns the outcome for the agent: the recorded one, or, for a call stopped because the agent lost access, the refusal that it would get
 * now, because it may no longer read the recorded one.
 */
export function outcomeForAgent(outcome: Outcome): Outcome {
  const { call } = outcome;
  if (call.accessEnded === undefined) return outcome;
  const mayBeMade = platformEffectOf(outcome) !== 'none' ? ', and may have been made' : '';
  return endedOutcome(call, call.accessEnded, `; the call was under way${mayBeMade}`);
}

function unjoined(acted: Acted): Recorded<Outcome> {
  if (acted === 'joined') throw new Error('only a request that can wait (X-Svc-Wait) can join a held call');
  return acted;
}

/** Whether an agent is halted, or its parent is, so that all its calls are refused. */
export const isStopped = ({ agent }: AgentPrincipal, now: Instant): boolean =>
  haltOf(agentFacts(agent), breakersOf(agent, now), now) !== undefined || !hasStandingParent(agent, now);
