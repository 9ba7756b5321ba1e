/** Refusals of `/git` as whoever asked can read them. */
import type { IncomingMessage } from 'node:http';
import { type GitTarget, mediaTypeOf, readTarget } from '../git/git-call.ts';
import { refusedFetch, refusedPush, refusedUnread } from '../git/push-report.ts';
import type { ReadBody } from '../git/read-request.ts';
import type { Reply } from './reply.ts';

/** Clients that show the report of a push, and of an error to one nothing that helps. */
const REPORTED = /^(?:git|JGit)\//;
/** Not isomorphic-git, which shows the body of an error. */
const REAL_GIT = /^git\/\d/;

/**
 * A refusal as whoever asked can read it. git itself shows nothing of an error to a POST but its status. So a push gets a report, which
 * says of each ref that it was refused and why, a fetch gets an error of the protocol, and a probe nothing: the push that follows it is
 * told. Other clients get the error.
 */
export function told(
  request: IncomingMessage,
  target: GitTarget | undefined,
  body: ReadBody | undefined,
  reply: Reply,
): Reply {
  const { 'user-agent': agent = '' } = request.headers;
  if (reply.status < 400 || target === undefined || target.isAdvertisement || !REPORTED.test(agent)) return reply;
  const answer = (bytes: Buffer | string): Reply => ({
    ...reply,
    status: 200,
    type: mediaTypeOf(target.service, 'result'),
    body: bytes,
  });
  const line = String(reply.body);
  if (target.service === 'git-upload-pack') return REAL_GIT.test(agent) ? answer(refusedFetch(line)) : reply;
  if (body?.ok && body.step === 'probe') return REAL_GIT.test(agent) ? answer('') : reply;
  if (!body?.push) return reply;
  const [, code = 'refused'] = /^\S+ (\w+) - /.exec(line) ?? [];
  const report = refusedPush(body.push.capabilities, body.push.refs, { code, line });
  return report === undefined ? reply : answer(report);
}

/**
 * The same of a refusal that came before the body was looked at: the store is away, or the agent asks too often. A 401 stays what it is,
 * because git asks for a password then.
 */
export function toldUnread(request: IncomingMessage, reply: Reply): Reply {
  const { 'user-agent': agent = '', 'content-length': length } = request.headers;
  const target = readTarget(request.method ?? '', request.url ?? '');
  if (reply.status < 400 || reply.status === 401 || !REAL_GIT.test(agent)) return reply;
  if (typeof target === 'string' || target.isAdvertisement) return reply;
  const line = String(reply.body);
  const isFetch = target.service === 'git-upload-pack';
  // What is that short is the probe before a long push.
  const body = isFetch ? refusedFetch(line) : length === '4' ? '' : refusedUnread(line);
  return { ...reply, status: 200, type: mediaTypeOf(target.service, 'result'), body };
}
