/**
 * Held calls as tasks (extension io.modelcontextprotocol/tasks, 2026-07-28). A task is a view of an approval with
 * the same id, so that it survives this process, this connection and this replica without being stored.
 */
import { ProtocolError, ProtocolErrorCode, type Result } from '@modelcontextprotocol/server';
import type { Approval } from '../client/approval.ts';
import type { HeldCallResult } from './handed.ts';
import { deliverResult, waitingNews } from './hold.ts';
import { unreadHeldAnswer } from './outcome-answer.ts';
import type { ToolHost } from './tool-host.ts';
import { isPassing } from './waiting.ts';

/** One poll a second is the broker's limit for an agent, which may have several tasks. */
const POLL_INTERVAL_MS = 5_000;

/** CreateTaskResult. */
export function taskCreated({ approval, createdAt }: Extract<HeldCallResult, { kind: 'task' }>): Result {
  return {
    resultType: 'task',
    ...task({ ...approval, createdAt, expiresAt: approval.expiresAt }, waitingNews(approval)),
    status: 'working',
  };
}

/** The result of tasks/get. Throws ProtocolError (invalid params) when this agent has no such task. */
export async function getTask(host: ToolHost, taskId: string): Promise<Result> {
  const found = await findTask(host, taskId);
  if (!found.ok) {
    const unknown = { approvalId: taskId, createdAt: new Date().toISOString(), expiresAt: undefined };
    // Clients treat an error as the end of the task, so temporary failures (restart, rate limit) are reported as working.
    if (isPassing(found.error.code))
      return {
        ...task(unknown, `The broker is temporarily unavailable: ${found.error.message}`),
        status: 'working',
      };
    return {
      ...task(unknown, found.error.message),
      status: 'completed',
      result: { resultType: 'complete', ...unreadHeldAnswer(found.error) },
    };
  }
  const approval = found.value;
  if (approval.state === 'pending') return { ...task(approval, waitingNews(approval)), status: 'working' };
  if (approval.state === 'running') return { ...task(approval, 'Approved, and being made now.'), status: 'working' };
  return {
    ...task(approval, ENDED[approval.state]),
    status: 'completed',
    // Complete, as the call itself would have been answered: the SDK completes only direct results of this request.
    result: { resultType: 'complete', ...(await deliverResult(host, approval)) },
  };
}

/**
 * tasks/cancel. Only an owner can deny a held call, and the agent cannot withdraw it, so the task continues (cancellation is
 * cooperative). Throws as getTask does.
 */
export async function cancelTask(host: ToolHost, taskId: string): Promise<Result> {
  await findTask(host, taskId);
  return {};
}

/** Throws ProtocolError (invalid params) when this agent has no such task. Does not mark the result as delivered. */
async function findTask(host: ToolHost, taskId: string): ReturnType<ToolHost['client']['approval']> {
  const found = await host.client.approval(taskId);
  if (!found.ok && (found.error.status === 404 || found.error.code === 'invalid_id'))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Failed to retrieve task: Task not found');
  return found;
}

const ENDED: Record<Exclude<Approval['state'], 'pending' | 'running'>, string> = {
  done: 'Approved and made.',
  not_made: 'Approved, but not made.',
  denied: 'Denied.',
  expired: 'Nobody decided in time.',
};

type Dates = { approvalId: string; createdAt: string; expiresAt: string | undefined };

function task({ approvalId, createdAt, expiresAt }: Dates, statusMessage: string) {
  const ttlMs = expiresAt === undefined ? null : Date.parse(expiresAt) - Date.parse(createdAt);
  return {
    taskId: approvalId,
    statusMessage,
    createdAt,
    lastUpdatedAt: new Date().toISOString(),
    ttlMs: ttlMs === null || Number.isNaN(ttlMs) ? null : ttlMs,
    pollIntervalMs: POLL_INTERVAL_MS,
  };
}
