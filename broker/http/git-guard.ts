/** What comes before the routes of `/git`: paths that are none, and browsers, which have no business there. */
import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { isOfBrowser } from '../auth/session-cookie.ts';
import { correlationId } from '../crypto/ids.ts';
import { readTarget } from '../git/git-call.ts';
import { line } from './line.ts';
import { type Reply, send } from './reply.ts';

/** Whether an error of this path is a line. */
export const isGitPath = (path: string): boolean => path === '/git' || path.startsWith('/git/');

/** Nothing is asked of anybody for what is refused here. */
export function guardGit(baseUrl: string): RequestHandler {
  return (request, response, next) => {
    if (!isGitPath(request.path)) return next();
    const reply = refuseBrowser(request, baseUrl) ?? refusePath(request);
    if (reply === undefined) return next();
    send(response, reply, correlationId());
  };
}

const refuseBrowser = (request: IncomingMessage, baseUrl: string): Reply | undefined =>
  isOfBrowser(request, baseUrl)
    ? line(403, 'forbidden', 'this address is for git clients, not for browsers')
    : undefined;

/** Judged as it was sent: what a router decodes may be another path. Other methods are told which ones there are. */
function refusePath({ method = '', url = '' }: IncomingMessage): Reply | undefined {
  const asked = ['GET', 'HEAD', 'POST'].includes(method) ? [method] : ['GET', 'POST'];
  const targets = asked.map((one) => readTarget(one, url));
  if (targets.every((one) => one === 'unknown')) {
    const isLfs = /^\/git\/[^/]+\/[^/]+\/(?:info\/)?lfs(?:\/|$)/.test(url);
    return isLfs
      ? line(404, 'not_found', 'Git LFS is not served; clone with GIT_LFS_SKIP_SMUDGE=1 to go without its files')
      : line(404, 'not_found', 'no such address; clone from /git/<owner>/<repo>');
  }
  return targets.every((one) => one === 'malformed')
    ? line(400, 'invalid_request', 'name one service, git-upload-pack or git-receive-pack; dumb HTTP is not served')
    : undefined;
}
