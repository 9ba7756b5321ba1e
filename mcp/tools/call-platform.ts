/** read_platform, write_platform and delete_platform: the call, and the ladder of ways to wait when it is held. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Action, CallOutcome } from '../client/action.ts';
import { isSettled } from '../client/approval.ts';
import type { ToolAnswer } from './answer.ts';
import { toolAnswer } from './answer.ts';
import { type Held, handOver, UNOPENED, waitingNews, waitOpenly, withLink } from './hold.ts';
import { errorAnswer, outcomeAnswer, pendingAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import { hashOf } from './repeats.ts';
import { readState, writeState } from './request-state.ts';
import type { ToolHost } from './tool-host.ts';

/** The largest call that the broker takes (docs/agents.md, POST /v1/actions). */
const MOST_CALL_BYTES = 1024 * 1024;

/** The call is held, and the client shall wait for it by other means than an open request. */
export type Handed =
  | { kind: 'answer'; answer: ToolAnswer }
  | { kind: 'task'; approval: Held; createdAt: string }
  /** An `input_required` result with the link; `state` comes back with the answer to it. */
  | { kind: 'link'; url: string; state: string }
  /** An error with the link; the identical call comes when it was opened. */
  | { kind: 'link_first'; approvalId: string; url: string };

const answered = (answer: ToolAnswer): Handed => ({ kind: 'answer', answer });

/** Throws the reason of the request's signal when it is aborted. */
export async function callPlatform(host: ToolHost, request: ToolRequest, action: Action): Promise<Handed> {
  const endsAt = Date.now() + host.waitMs;
  if (Buffer.byteLength(JSON.stringify(action)) > MOST_CALL_BYTES)
    return answered(
      toolAnswer({
        status: 'failed',
        code: 'payload_too_large',
        detail: 'The call is larger than 1 MiB. Nothing was sent.',
        next: 'Send less in one call.',
      }),
    );
  const hash = hashOf(action);
  const approvalId = resumedApproval(request, hash) ?? (await host.repeats.find(hash))?.approvalId;
  if (approvalId !== undefined) {
    const again = await sameCall(host, request, { hash, approvalId, endsAt });
    if (again) return again;
  }
  const outcome = await submit(host, request, action, { hash, endsAt });
  request.signal.throwIfAborted();
  if (outcome.kind === 'denied' || outcome.kind === 'halted') host.permissions.refreshSoon();
  if (outcome.kind !== 'held') {
    const isWrite = action.method !== 'GET';
    // Only what is handed over is over: after a cancelled call the identical one gets the answer that nobody took.
    if (isWrite && !isUnanswered(outcome)) await host.repeats.end(hash);
    return answered(outcomeAnswer(outcome, action, isWrite));
  }
  return await waitForPerson(host, request, { held: outcome, hash, endsAt, again: false });
}

/**
 * The approval of the very same call that this request resumes. What a client brings back may be altered: it can name no
 * approval but the agent's own, which the broker sees to.
 */
function resumedApproval({ resumed }: ToolRequest, hash: string): string | undefined {
  const state = readState(resumed?.state);
  return state.hash === hash ? state.approvalId : undefined;
}

/** Sends the call, under its Idempotency-Key when it may have an effect, and remembers it for as long as nobody has its answer. */
async function submit(
  host: ToolHost,
  { signal }: ToolRequest,
  action: Action,
  { hash, endsAt }: Submitting,
): Promise<CallOutcome> {
  if (action.method === 'GET') {
    const outcome = await host.client.call(action, { signal });
    if (outcome.kind === 'held') await host.repeats.held(hash, outcome.approvalId);
    return outcome;
  }
  const same = host.underway?.get(hash);
  if (same) {
    const outcome = await same;
    return outcome.kind === 'answered' ? { ...outcome, repeated: true } : outcome;
  }
  const writing = write(host, action, { hash, endsAt }).finally(() => host.underway?.delete(hash));
  host.underway?.set(hash, writing);
  return await writing;
}

/** A write is not given up on when the client cancels: it may be on its way already, and its outcome has to be known. */
async function write(host: ToolHost, action: Action, { hash, endsAt }: Submitting): Promise<CallOutcome> {
  const { key, reason } = await host.repeats.begin(hash, action.reason);
  const { reason: _, ...rest } = action;
  const call = { ...rest, ...(reason !== undefined && { reason }) };
  let outcome = await host.client.call(call, { idempotencyKey: key });
  // The identical call is on its way from elsewhere: its answer is this one's, too.
  while (outcome.kind === 'failed' && outcome.error.code === IN_PROGRESS && Date.now() + LOOK_AGAIN_MS < endsAt) {
    await sleep(LOOK_AGAIN_MS);
    outcome = await host.client.call(call, { idempotencyKey: key });
  }
  if (outcome.kind === 'held') await host.repeats.held(hash, outcome.approvalId);
  return outcome;
}

type Submitting = { hash: string; endsAt: number };

const IN_PROGRESS = 'idempotency_in_progress';
const LOOK_AGAIN_MS = 500;

const UNANSWERED = new Set(['unreachable', 'unexpected_answer', 'internal_error', 'audit_unavailable', IN_PROGRESS]);
/** Whether the broker may know more of this call than it told: then the identical call is the same one. */
const isUnanswered = (outcome: CallOutcome): boolean =>
  outcome.kind === 'failed' && outcome.error.mayHaveActed && UNANSWERED.has(outcome.error.code);

type Waiting = { hash: string; approvalId: string; endsAt: number };

/** The identical call waits already, or was decided while nobody listened. Undefined: the broker knows nothing of it. */
async function sameCall(
  host: ToolHost,
  request: ToolRequest,
  { hash, approvalId, endsAt }: Waiting,
): Promise<Handed | undefined> {
  const found = await host.client.approval(approvalId, { signal: request.signal });
  if (!found.ok) {
    if (found.error.status !== 404) return answered(errorAnswer(found.error, false));
    await host.repeats.end(hash);
    return undefined;
  }
  if (!isSettled(found.value))
    return await waitForPerson(host, request, { held: found.value, hash, endsAt, again: true });
  return answered(await handOver(host, found.value));
}

/**
 * The highest rung of the ladder that the client declared: a task, a link that it opens, or an open request. `again`: the
 * identical call was held before, so that its link has been shown.
 */
async function waitForPerson(
  host: ToolHost,
  request: ToolRequest,
  { held, hash, endsAt, again }: { held: Held; hash: string; endsAt: number; again: boolean },
): Promise<Handed> {
  const url = held.approvalUrl;
  if (request.takesTasks) return { kind: 'task', approval: held, createdAt: new Date().toISOString() };
  const state = writeState(held.approvalId, hash);
  const { resumed } = request;
  if (request.opensLinks === 'by_result' && url !== undefined && resumed?.state !== state)
    return { kind: 'link', url, state };
  if (request.opensLinks === 'by_error' && url !== undefined && !again)
    return { kind: 'link_first', approvalId: held.approvalId, url };
  if (resumed && resumed.action !== 'accept') return answered(pendingAnswer(held, UNOPENED));
  if (request.opensLinks === 'by_request' && url !== undefined)
    return answered(await withLink(host, request, { ...held, approvalUrl: url }));
  return answered(await waitOpenly(host, request, held, { endsAt, news: waitingNews(url) }));
}
