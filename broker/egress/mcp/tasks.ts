/**
 * Tool calls that an MCP server runs as tasks: by the extension io.modelcontextprotocol/tasks of revision 2026-07-28, or by the core of
 * 2025-11-25. Requested only when the server runs the call in no other way; the task is then followed until it ends, as if the call itself
 * had been answered.
 */
import { objectMembers } from '../../../json/member-texts.ts';
import { LONG_BODY } from '../../runtime/long-bodies.ts';
import { inSlices, runToEnd } from '../../runtime/pace.ts';
import { unreachable } from '../unreachable.ts';
import { type CallTime, mayPass } from './ask-again.ts';
import type { RpcAnswer } from './rpc.ts';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
/** "Missing required client capability": returned before anything is done. */
const MISSING_CAPABILITY = -32_021;
/** "Invalid params": the task does not exist (any more). */
const NO_TASK = -32_602;
const MAX_MEMBERS = 10_000;
const MAX_ID_CHARACTERS = 1_024;
const MAX_ERROR_CHARACTERS = 64 * 1024;
/** Delay between two polls: the default when the server gives none, the minimum and the maximum. */
const POLL_MS = { usual: 1_000, least: 100, most: 15_000 };

type Result = Extract<RpcAnswer, { kind: 'result' }>;

/** How a protocol revision represents tasks. */
type TaskForm = {
  /** The member of the first answer that holds the task; undefined when the answer is the task. */
  within: string | undefined;
  pollInterval: string;
  /** Whether `tasks/get` contains the outcome of a finished task; otherwise `tasks/result` returns it. */
  inlined: boolean;
};
const FORMS = {
  extension: { within: undefined, pollInterval: 'pollIntervalMs', inlined: true },
  core: { within: 'task', pollInterval: 'pollInterval', inlined: false },
} satisfies Record<string, TaskForm>;

/** The revisions 2026-07-28 (`extension`) and 2025-11-25 (`core`). */
export type TaskRevision = keyof typeof FORMS;

export type TaskRequests = CallTime & {
  /** Sends a request about the task. */
  ask(method: 'tasks/get' | 'tasks/result' | 'tasks/cancel', taskId: string): Promise<RpcAnswer>;
};

/** Whether a server reports that it did nothing, because it runs this call only as a task. */
export function wantsTasks(answer: RpcAnswer): boolean {
  if (answer.kind !== 'error' || answer.code !== MISSING_CAPABILITY || answer.text.length > MAX_ERROR_CHARACTERS)
    return false;
  const { data } = JSON.parse(answer.text) as { data?: { requiredCapabilities?: { extensions?: unknown } } };
  const wanted = data?.requiredCapabilities?.extensions;
  return typeof wanted === 'object' && wanted !== null && TASKS_EXTENSION in wanted;
}

/** Whether a tool's definition requires tasks (2025-11-25, `execution.taskSupport`). */
export const isTaskOnly = (execution: unknown): boolean =>
  typeof execution === 'object' &&
  execution !== null &&
  'taskSupport' in execution &&
  execution.taskSupport === 'required';

/**
 * Follows the task of a first answer until it ends, and returns the answer of the call. A task that requests input, is cancelled by others,
 * is unknown to its server, or does not end in time becomes a request with unknown outcome; in most of these cases the server is asked to
 * cancel it.
 */
export async function followTask(first: Result, revision: TaskRevision, requests: TaskRequests): Promise<RpcAnswer> {
  const form = FORMS[revision];
  const seed = await membersOf(first.text);
  // The server returned the result instead of a task.
  if (form.within !== undefined && seed?.has(form.within) === false) return first;
  let task = form.within === undefined ? seed : await membersOf(seed?.get(form.within) ?? '');
  const taskId = textOf(task?.get('taskId'));
  // Without an id the task cannot be polled.
  if (taskId === undefined || taskId === '') return unreachable('not_mcp', true, 'task');
  const giveUp = async (ended: RpcAnswer): Promise<RpcAnswer> => {
    await requests.ask('tasks/cancel', taskId);
    return ended;
  };
  let last: Result = first;
  for (let hasFailed = false; ; ) {
    const status = textOf(task?.get('status'));
    const hasEnded = status === 'completed' || status === 'failed';
    if (status === 'input_required') return await giveUp(unreachable('asked_back', true, 'task'));
    if (status === 'cancelled') return unreachable('task_ended', true, 'cancelled');
    if (!hasEnded && status !== 'working') return await giveUp(unreachable('not_mcp', true, 'task_status'));
    // The first answer never contains the outcome.
    if (hasEnded && form.inlined && last !== first)
      return (await outcomeOf(last, task, status)) ?? unreachable('not_mcp', true, 'task');
    const left = requests.left();
    if (left <= 0) return await giveUp(unreachable('timeout', true, 'total'));
    if (!hasEnded || hasFailed) await requests.pause(Math.min(left, pollAfter(task?.get(form.pollInterval))));
    const isLast = hasEnded && !form.inlined;
    const answer = await requests.ask(isLast ? 'tasks/result' : 'tasks/get', taskId);
    if (isLast && (answer.kind === 'result' || answer.kind === 'error')) return answer;
    hasFailed = answer.kind !== 'result';
    if (answer.kind === 'result') {
      last = answer;
      task = await membersOf(answer.text);
    } else {
      const fault = faultOf(answer);
      if (fault !== undefined) return await giveUp(fault);
    }
  }
}

/** Returns what ends the call after a failed poll. `sent` is true, because the call itself was sent. */
function faultOf(answer: Exclude<RpcAnswer, Result>): RpcAnswer | undefined {
  if (answer.kind === 'error') return answer.code === NO_TASK ? unreachable('task_ended', true, 'unknown') : undefined;
  if (mayPass(answer)) return undefined;
  if (answer.kind === 'unreachable') return { ...answer, sent: true };
  return unreachable('task_ended', true, `status_${answer.received.status}`);
}

/** Returns the outcome of a finished task from `tasks/get` (2026-07-28). */
async function outcomeOf(
  { received }: Result,
  task: ReadonlyMap<string, string> | undefined,
  status: 'completed' | 'failed',
): Promise<RpcAnswer | undefined> {
  const text = task?.get(status === 'completed' ? 'result' : 'error');
  const members = text === undefined ? undefined : await membersOf(text);
  if (text === undefined || members === undefined) return undefined;
  if (status === 'completed') return { kind: 'result', received, text };
  const code = Number(members.get('code'));
  return Number.isInteger(code) ? { kind: 'error', received, text, code } : undefined;
}

/** Undefined when the text is not an object, or readers could read it differently. */
async function membersOf(text: string): Promise<ReadonlyMap<string, string> | undefined> {
  const work = objectMembers(text, MAX_MEMBERS);
  const members = text.length > LONG_BODY ? await inSlices(work) : runToEnd(work);
  return members === 'unclear' ? undefined : members;
}

function textOf(json: string | undefined): string | undefined {
  if (json === undefined || json.length > MAX_ID_CHARACTERS || !json.startsWith('"')) return undefined;
  return JSON.parse(json) as string;
}

function pollAfter(json: string | undefined): number {
  const asked = json === undefined || json.length > 20 ? Number.NaN : Number(json);
  return Number.isFinite(asked) ? Math.min(Math.max(asked, POLL_MS.least), POLL_MS.most) : POLL_MS.usual;
}
