/** Runs one tool call, from its arguments to its result. */
import type { z } from 'zod';
import type { Action } from '../client/action.ts';
import { isSettled } from '../client/approval.ts';
import { askForAccess, listPermissions } from './access.ts';
import { type ToolAnswer, toolAnswer } from './answer.ts';
import {
  AccessArguments,
  CheckArguments,
  DeleteArguments,
  NoArguments,
  problemsOf,
  ReadArguments,
  WriteArguments,
} from './arguments.ts';
import { callPlatform } from './call-platform.ts';
import type { HeldCallResult } from './handed.ts';
import { deliverResult, waitingNews } from './hold.ts';
import { approvalAnswer, unreadHeldAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';
import { wrongArguments } from './wrong-arguments.ts';

/** Returns undefined when there is no such tool. Throws the reason of the request's signal when it is aborted. */
export async function runTool(
  host: ToolHost,
  request: ToolRequest,
  name: string,
  given: unknown,
): Promise<HeldCallResult | undefined> {
  const called = async (taken: z.output<typeof DeleteArguments>, method: Action['method']): Promise<HeldCallResult> => {
    const problem = twoBodies(taken);
    return problem === undefined
      ? await callPlatform(host, request, action(taken, method))
      : { kind: 'answer', answer: wrongArguments(problem) };
  };
  switch (name) {
    case 'read_platform':
      return await parsed(ReadArguments, given, (taken) => callPlatform(host, request, action(taken, 'GET')));
    case 'write_platform':
      return await parsed(WriteArguments, given, ({ method, ...taken }) => called(taken, method));
    case 'delete_platform':
      return await parsed(DeleteArguments, given, (taken) => called(taken, 'DELETE'));
    case 'check_approval':
      return await parsed(CheckArguments, given, async ({ approval_id }) => ({
        kind: 'answer',
        answer: await checkApproval(host, request, approval_id),
      }));
    case 'list_permissions':
      return await parsed(NoArguments, given, async () => ({ kind: 'answer', answer: await listPermissions(host) }));
    case 'request_access':
      return await parsed(AccessArguments, given, async (taken) => ({
        kind: 'answer',
        answer: await askForAccess(host, request, withoutGaps(taken)),
      }));
    default:
      return undefined;
  }
}

async function parsed<S extends z.ZodType>(
  schema: S,
  given: unknown,
  run: (taken: z.output<S>) => Promise<HeldCallResult>,
): Promise<HeldCallResult> {
  const read = schema.safeParse(given ?? {});
  if (read.success) return await run(read.data);
  return { kind: 'answer', answer: wrongArguments(problemsOf(read.error)) };
}

/** Builds the requested call. A body that is not an object becomes `data`, too, and its media type a header. */
function action({ body, ...taken }: z.output<typeof DeleteArguments>, method: Action['method']): Action {
  if (body === undefined) return withoutGaps({ ...taken, method });
  const { content_type: type, ...written } = body;
  const headers = type === undefined ? taken.headers : { ...taken.headers, 'content-type': type };
  return withoutGaps({ ...taken, ...written, headers, method });
}

/** Returns a problem when both `data` and `body` are given. */
const twoBodies = ({ data, body }: z.output<typeof DeleteArguments>): string | undefined =>
  data !== undefined && body !== undefined ? 'body: give data or body, not both' : undefined;

/** Omitted members are absent, not undefined. */
type WithoutGaps<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};
const withoutGaps = <T extends object>(value: T): WithoutGaps<T> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as WithoutGaps<T>;

/** check_approval: the state of a held call. Throws the reason of the request's signal when it is aborted. */
async function checkApproval(host: ToolHost, request: ToolRequest, id: string): Promise<ToolAnswer> {
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
  if (found.error.code !== 'not_found') return unreadHeldAnswer(found.error);
  return toolAnswer({
    status: 'failed',
    code: 'not_found',
    detail: `This agent has no held call ${id}.`,
    next: 'Take the approval_id from the answer of the call that was held.',
  });
}
