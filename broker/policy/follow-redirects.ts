/** The operations whose redirects are followed, from a manifest's `follow`. */
import type { CallAsk } from './call-ask.ts';
import type { Operation, PlatformRules } from './platform-rules.ts';

/** Returns why an operation cannot be in `follow`, as a sentence; undefined when it can. */
export const followProblem = (operation: Operation): string | undefined =>
  operation.kind === 'http' && operation.method === 'GET'
    ? undefined
    : `"${operation.source}": only redirects of reads are followed; write "GET /path/*"`;

/** Whether the redirect of a call is followed. Call it with GET for a HEAD. The path is matched byte for byte: another spelling is not followed. */
export const isFollowed = (
  { follow }: Pick<PlatformRules, 'follow'>,
  call: Pick<CallAsk, 'method' | 'path'>,
): boolean => call.method === 'GET' && follow.some((one) => one.kind === 'http' && one.path.matches(call.path));
