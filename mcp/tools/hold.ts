/** Waiting for approval. */
import { type Approval, isSettled } from '../client/approval.ts';
import type { ToolAnswer } from './answer.ts';
import type { PersonQuestion } from './ask-person.ts';
import type { Held } from './handed.ts';
import { approvalAnswer, isWithheld, pendingAnswer, wouldDoText } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';

const UNOPENED = 'The call is held until a person decides; they did not open the link. Nothing was sent yet.';
const UNREAD =
  'The call was held until a person decides. Whether they did could not be read just now: it may have been made since.';
const UNSHOWN = 'The call is held until a person decides; nobody was shown the link. Nothing was sent yet.';

/** Describes the waiting in one line; the link is left out when the client shows it separately. */
export function waitingNews({ approvalUrl, sentence }: Partial<Pick<Held, 'approvalUrl' | 'sentence'>>): string {
  const what = sentence === undefined ? '' : `, which would ${sentence}`;
  return `Waiting for a person to approve this call${what}${approvalUrl === undefined ? '' : `: ${approvalUrl}`}`;
}

/** Delivers the result of a final approval; from now on the identical call is a new one, unless the result is withheld: that is delivered later. */
export async function deliverResult(host: ToolHost, approval: Approval): Promise<ToolAnswer> {
  if (isSettled(approval) && !isWithheld(approval)) await host.repeats.endApproval(approval.approvalId);
  return approvalAnswer(approval);
}

/** `hash`: of the call, by hashOf. `again`: the identical call was held before, so its link was already shown. */
export function approvalAsked(
  host: ToolHost,
  held: Held,
  { hash, again }: { hash: string; again: boolean },
): PersonQuestion<ToolAnswer> {
  const { approvalId, approvalUrl: url, sentence } = held;
  return {
    for: 'approval',
    id: approvalId,
    hash,
    url,
    message: waitingNews({ sentence }),
    words:
      `The call is held until a person decides at ${url} and nothing was sent yet.${wouldDoText(held)} Show them the link, then make the identical ` +
      `call again: it is not submitted twice, and waits for the decision. Or call check_approval with approval_id "${approvalId}".`,
    again: () => again,
    wait: (request, options) => waitOpenly(host, request, held, options),
    unopened: () => pendingAnswer(held, UNOPENED),
    unfinished: ({ unshown }) => pendingAnswer(held, unshown ? UNSHOWN : undefined),
  };
}

/** Waits with an open request until `endsAt`, then returns the approval's id. `unshown`: the client did not show the link. */
async function waitOpenly(
  host: ToolHost,
  request: ToolRequest,
  held: Held,
  { endsAt, unshown = false }: { endsAt: number; unshown?: boolean },
): Promise<ToolAnswer> {
  const poll = (waitSeconds: number) => host.client.approval(held.approvalId, { waitSeconds, signal: request.signal });
  const found = await waitFor(poll, isSettled, { request, endsAt, news: waitingNews(held) });
  if (!found.ok) return pendingAnswer(held, UNREAD);
  if (isSettled(found.value)) return await deliverResult(host, found.value);
  return unshown && found.value.state !== 'running' ? pendingAnswer(held, UNSHOWN) : approvalAnswer(found.value);
}
