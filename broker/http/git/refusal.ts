/** Formats refusals of `/git` so that the client shows them. */
import type { IncomingMessage } from 'node:http';
import { type GitTarget, mediaTypeOf, readTarget } from '../../git/git-call.ts';
import { refusedAdvertisement, refusedFetch, refusedPush, refusedUnread } from '../../git/push-report.ts';
import type { ReadBody } from '../../git/read-request.ts';
import type { Reply } from '../reply.ts';

/** Clients that show the report of a push, but nothing useful of an HTTP error to one. */
const REPORTED = /^(?:git|JGit)\//;
/** Git itself. Not isomorphic-git, which shows the body of an error. */
const REAL_GIT = /^git\/\d/;

/** libgit2, dulwich and JGit show the status of an HTTP error to a request for the refs, but the text of an error of the protocol. */
const SHOWS_PROTOCOL_ERROR = /^git\/2\.0 \(libgit2 |^git\/dulwich\/|^JGit\//;

/** Formats a refusal of a request for the refs. A 401 stays unchanged: it makes a client ask for credentials. */
function formatRefusedRefs(agent: string, { service }: GitTarget, reply: Reply): Reply {
  if (reply.status === 401 || !SHOWS_PROTOCOL_ERROR.test(agent)) return reply;
  const body = refusedAdvertisement(service, String(reply.body));
  return { ...reply, status: 200, type: mediaTypeOf(service, 'advertisement'), body };
}

/**
 * Formats a refusal for the client. git shows only the status of an error to a POST. So a push gets a report that names the reason for each ref, or a
 * fatal error if its commands could not be read, a fetch gets an error of the protocol, and a probe gets an empty success: the push that follows it is
 * refused with the reason. Other clients get the HTTP error.
 */
export function formatGitRefusal(
  request: IncomingMessage,
  target: GitTarget | undefined,
  body: ReadBody | undefined,
  reply: Reply,
): Reply {
  const { 'user-agent': agent = '' } = request.headers;
  if (reply.status < 400 || target === undefined) return reply;
  if (target.isAdvertisement) return formatRefusedRefs(agent, target, reply);
  if (!REPORTED.test(agent)) return reply;
  const answer = (bytes: Buffer | string): Reply => ({
    ...reply,
    status: 200,
    type: mediaTypeOf(target.service, 'result'),
    body: bytes,
  });
  const line = String(reply.body);
  if (target.service === 'git-upload-pack') return REAL_GIT.test(agent) ? answer(refusedFetch(line)) : reply;
  if (body?.ok && body.step === 'probe') return REAL_GIT.test(agent) ? answer('') : reply;
  // The commands could not be read, or are more than a push may have.
  if (!body?.push) return body?.ok === false && REAL_GIT.test(agent) ? answer(refusedUnread(line)) : reply;
  const [, code = 'refused'] = /^\S+ (\w+) - /.exec(line) ?? [];
  const report = refusedPush(body.push.capabilities, body.push.refs, { code, line });
  return report === undefined ? reply : answer(report);
}

/**
 * Formats a refusal that came before the body was read: the store is unavailable, or the rate limit is reached. A 401 stays unchanged, because git
 * then asks for a password.
 */
export function formatUnreadRefusal(request: IncomingMessage, reply: Reply): Reply {
  const { 'user-agent': agent = '', 'content-length': length } = request.headers;
  const target = readTarget(request.method ?? '', request.url ?? '');
  if (reply.status < 400 || reply.status === 401 || typeof target === 'string') return reply;
  if (target.isAdvertisement) return formatRefusedRefs(agent, target, reply);
  if (!REAL_GIT.test(agent)) return reply;
  const line = String(reply.body);
  const isFetch = target.service === 'git-upload-pack';
  // A body of 4 bytes is the probe before a long push.
  const body = isFetch ? refusedFetch(line) : length === '4' ? '' : refusedUnread(line);
  return { ...reply, status: 200, type: mediaTypeOf(target.service, 'result'), body };
}
