/** Waiting for approval: with an open request, or with a link that the client opens. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallOutcome } from '../client/action.ts';
import { type Approval, isSettled } from '../client/approval.ts';
import type { ToolAnswer } from './answer.ts';
import { approvalAnswer, pendingAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';

export type Held = Pick<Extract<CallOutcome, { kind: 'held' }>, 'approvalId' | 'approvalUrl' | 'expiresAt'>;

/** Clients suspend their timeout during a dialog, or have five minutes (docs/clients). */
const MOST_DIALOG_MS = 240_000;

/** A refusal within this time is by the client itself (without a person), not by a person who read it. */
const SOONEST_REFUSAL_MS = 2_000;

const UNOPENED = 'The call is held until a person decides; they did not open the link. Nothing was sent yet.';
const UNSHOWN = 'The call is held until a person decides; nobody was shown the link. Nothing was sent yet.';

/** Whether a person, and not the client itself, refused to open a link that was sent `ms` before. */
export const isRefusal = (action: string, ms: number): boolean =>
  (action === 'decline' || action === 'cancel') && !(ms < SOONEST_REFUSAL_MS);

export const unopenedAnswer = (held: Held): ToolAnswer => pendingAnswer(held, UNOPENED);

export const waitingNews = (url: string | undefined): string =>
  `Waiting for a person to approve this call${url === undefined ? '' : `: ${url}`}`;

/** Delivers the result of a final approval; from now on the identical call is a new one. */
export async function handOver(host: ToolHost, approval: Approval): Promise<ToolAnswer> {
  if (isSettled(approval)) await host.repeats.endApproval(approval.approvalId);
  return approvalAnswer(approval);
}

/** The fallback: an open request for 50 seconds, then the approval's id. `unshown`: the client showed the link to nobody. */
export async function waitOpenly(
  host: ToolHost,
  request: ToolRequest,
  held: Held,
  { endsAt, news, unshown = false }: { endsAt: number; news: string; unshown?: boolean },
): Promise<ToolAnswer> {
  const poll = (waitSeconds: number) => host.client.approval(held.approvalId, { waitSeconds, signal: request.signal });
  const found = await waitFor(poll, isSettled, { request, endsAt, news });
  if (found.ok && isSettled(found.value)) return await handOver(host, found.value);
  if (unshown && !(found.ok && found.value.state === 'running')) return pendingAnswer(held, UNSHOWN);
  return found.ok ? approvalAnswer(found.value) : pendingAnswer(held);
}

/** Asks the person to open the link. A decision made elsewhere meanwhile cancels the dialog. */
export async function withLink(
  host: ToolHost,
  request: ToolRequest & Required<Pick<ToolRequest, 'openLink'>>,
  held: Held & { approvalUrl: string },
): Promise<ToolAnswer> {
  const closing = new AbortController();
  const signal = AbortSignal.any([request.signal, closing.signal]);
  const link = { id: held.approvalId, url: held.approvalUrl, message: waitingNews(undefined) };
  const news = waitingNews(held.approvalUrl);
  const decided = waitOpenly(host, { ...request, signal }, held, { endsAt: Date.now() + MOST_DIALOG_MS, news });
  const askedAt = performance.now();
  const opened = request.openLink(link, signal).catch(() => 'nobody_asked' as const);
  try {
    const first = await Promise.race([decided, opened]);
    if (typeof first === 'object') return first;
    if (isRefusal(first, performance.now() - askedAt)) return unopenedAnswer(held);
    // The person has opened it, or it could not be shown.
    const words = first === 'accept' ? undefined : UNSHOWN;
    const over = sleep(host.waitMs, undefined, { signal }).then(() => pendingAnswer(held, words));
    return await Promise.race([decided, over]);
  } finally {
    closing.abort();
    await decided.catch(() => {});
  }
}
