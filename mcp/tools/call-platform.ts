/** read_platform, write_platform and delete_platform: the call, and how to wait if it is held. */
import type { Action } from '../client/action.ts';
import { isSettled } from '../client/approval.ts';
import { toolAnswer } from './answer.ts';
import { askPerson } from './ask-person.ts';
import { consentAgain, consentAsked, pendingConsent } from './consent.ts';
import { answerResult, type Held, type HeldCallResult } from './handed.ts';
import { approvalAsked, deliverResult } from './hold.ts';
import { withCaller } from './named-caller.ts';
import { outcomeAnswer, unreadHeldAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import { hashOf } from './repeats.ts';
import { readState } from './request-state.ts';
import type { ToolHost } from './tool-host.ts';
import { withNews } from './waiting.ts';
import { isFinal, writeOnce } from './write-once.ts';
import type { Written } from './written.ts';

/** Maximum size of a call (docs/agents.md, POST /v1/actions). */
const MAX_CALL_BYTES = 1024 * 1024;

/** Throws the reason of the request's signal when it is aborted. */
export async function callPlatform(host: ToolHost, request: ToolRequest, asked: Action): Promise<HeldCallResult> {
  const endsAt = Date.now() + host.waitMs;
  const named = await withCaller(host, asked);
  if (!named.ok) return answerResult(named.answer);
  const { action } = named;
  if (Buffer.byteLength(JSON.stringify(action)) > MAX_CALL_BYTES)
    return answerResult(
      toolAnswer({
        status: 'failed',
        code: 'payload_too_large',
        detail: 'The call is larger than 1 MiB. Nothing was sent.',
        next: 'Send less in one call.',
      }),
    );
  const hash = hashOf(action, action.caller && (await host.personKey(action.caller)));
  // The state from a client may name an unknown approval; then the stored one is used.
  for (const approvalId of new Set([resumedApproval(request, hash), (await host.repeats.find(hash))?.approvalId])) {
    const again = approvalId && (await sameCall(host, request, { hash, approvalId, endsAt }));
    if (again) return again;
  }
  const isWrite = action.method !== 'GET';
  const { traceparent } = request;
  const make = async (): Promise<Written> => {
    const made = await withNews(request, 'The platform has not answered yet.', () =>
      isWrite
        ? write(host, action, { hash, endsAt, traceparent })
        : read(host, action, { hash, signal: request.signal, traceparent }),
    );
    request.signal.throwIfAborted();
    return made;
  };
  let made = await make();
  const consent = pendingConsent(made.outcome) ?? (await consentAgain(host, action, made.outcome, request.signal));
  if (consent) {
    const wanted = consentAsked(host, consent, { hash, platform: action.platform });
    const waited = await askPerson(request, wanted, { endsAt, waitMs: host.waitMs });
    if (waited.kind !== 'done') return waited;
    if (waited.value.kind === 'answer') return answerResult(waited.value.answer);
    made = await make();
  }
  const { outcome, key, joins } = made;
  if (outcome.kind === 'denied' || outcome.kind === 'halted') host.permissions.refreshSoon();
  if (outcome.kind !== 'held') {
    // Ended only when the result is delivered: after a cancelled call the identical one gets the undelivered result.
    if (key !== undefined && isFinal(outcome)) await host.repeats.end(hash, key);
    return answerResult(outcomeAnswer(outcome, action, { written: isWrite, joins: joins && !isFinal(outcome) }));
  }
  return await waitForPerson(host, request, { held: outcome, hash, endsAt, again: false });
}

/**
 * The approval of the same call that this request resumes. The state is untrusted: the broker only accepts approvals of this
 * agent.
 */
function resumedApproval({ resumed }: ToolRequest, hash: string): string | undefined {
  const state = readState(resumed?.state);
  return state.for === 'approval' && state.hash === hash ? state.id : undefined;
}

/** A read: stored only if it is held, for its approval. */
async function read(
  host: ToolHost,
  action: Action,
  { hash, signal, traceparent }: { hash: string; signal: AbortSignal } & Traced,
): Promise<Written> {
  const outcome = await host.client.call(action, { signal, traceparent });
  if (outcome.kind === 'held') {
    try {
      const { key } = await host.repeats.begin(hash, undefined);
      await host.repeats.held(hash, key, outcome.approvalId);
    } catch (error) {
      // The call is held even though it could not be stored, so the client still gets the hold.
      host.failed(error);
    }
  }
  return { outcome, joins: false };
}

/** Concurrent identical writes are executed once, for all of them. */
async function write(
  host: ToolHost,
  action: Action,
  { hash, endsAt, traceparent }: Omit<Waiting, 'approvalId'> & Traced,
): Promise<Written> {
  const same = host.underway?.get(hash);
  if (same) {
    const { outcome, ...rest } = await same;
    return { ...rest, outcome: outcome.kind === 'answered' ? { ...outcome, repeated: true } : outcome };
  }
  const writing = writeOnce(host, action, { hash, endsAt, traceparent }).finally(() => host.underway?.delete(hash));
  host.underway?.set(hash, writing);
  return await writing;
}

type Traced = Pick<ToolRequest, 'traceparent'>;
type Waiting = { hash: string; approvalId: string; endsAt: number };

/** The identical call is already held, or was decided meanwhile. Undefined: unknown to the broker. */
async function sameCall(
  host: ToolHost,
  request: ToolRequest,
  { hash, approvalId, endsAt }: Waiting,
): Promise<HeldCallResult | undefined> {
  const found = await host.client.approval(approvalId, { signal: request.signal });
  if (!found.ok) {
    if (found.error.status !== 404) return answerResult(unreadHeldAnswer(found.error));
    await host.repeats.endApproval(approvalId);
    return undefined;
  }
  if (!isSettled(found.value))
    return await waitForPerson(host, request, { held: found.value, hash, endsAt, again: true });
  return answerResult(await deliverResult(host, found.value));
}

/** `again`: the identical call was held before, so its link was already shown. */
async function waitForPerson(
  host: ToolHost,
  request: ToolRequest,
  { held, hash, endsAt, again }: { held: Held; hash: string; endsAt: number; again: boolean },
): Promise<HeldCallResult> {
  if (request.takesTasks) return { kind: 'task', approval: held, createdAt: new Date().toISOString() };
  const asked = approvalAsked(host, held, { hash, again });
  const waited = await askPerson(request, asked, { endsAt, waitMs: host.waitMs });
  return waited.kind === 'done' ? answerResult(waited.value) : waited;
}
