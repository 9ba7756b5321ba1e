/** The operations whose redirect is followed (decisions, Calling), from a manifest's `follow`. */
import type { CallAsk } from './call-ask.ts';
import type { Operation, PlatformRules } from './platform-rules.ts';

/** What keeps an operation out of `follow`, as a sentence; undefined: nothing. */
export const followProblem = (operation: Operation): string | undefined =>
  operation.kind === 'http' && operation.method === 'GET'
    ? undefined
    : `"${operation.source}": only redirects of reads are followed; write "GET /path/*"`;

/** Whether the redirect of a call is followed. A HEAD is asked about as a GET. Byte for byte: another spelling gets no more. */
export const isFollowed = (
  { follow }: Pick<PlatformRules, 'follow'>,
  call: Pick<CallAsk, 'method' | 'path'>,
): boolean => call.method === 'GET' && follow.some((one) => one.kind === 'http' && one.path.matches(call.path));
