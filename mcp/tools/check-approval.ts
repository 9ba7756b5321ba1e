/** check_approval: the state of a held call. */
import { isSettled } from '../client/approval.ts';
import type { ToolAnswer } from './answer.ts';
import { toolAnswer } from './answer.ts';
import { deliverResult, waitingNews } from './hold.ts';
import { approvalAnswer, errorAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';

/** Throws the reason of the request's signal when it is aborted. */
export async function checkApproval(host: ToolHost, request: ToolRequest, id: string): Promise<ToolAnswer> {
  const endsAt = Date.now() + host.waitMs;
  const { signal } = request;
  const first = await host.client.approval(id, { signal });
  const found =
    first.ok && !isSettled(first.value)
      ? await waitFor((waitSeconds) => host.client.approval(id, { waitSeconds, signal }), isSettled, {
          request,
          endsAt,
          news: waitingNews(first.value),
        })
      : first;
  if (found.ok) return isSettled(found.value) ? await deliverResult(host, found.value) : approvalAnswer(found.value);
  if (found.error.code !== 'not_found') return errorAnswer(found.error, false);
  return toolAnswer({
    status: 'failed',
    code: 'not_found',
    detail: `This agent has no held call ${id}.`,
    next: 'Take the approval_id from the answer of the call that was held.',
  });
}
