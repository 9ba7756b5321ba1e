/** Maps a git request over HTTP to a governed call (specification, Governed git). */
import type { GitRequest, GitStep } from '../calls/git-request.ts';
import type { CallRequest } from '../calls/perform.ts';
import type { GitAsk, GitRef } from '../policy/facts.ts';
import type { Push } from './command-list.ts';
import { ReportReader } from './read-report.ts';

/** The platform of all /git routes. */
export const GIT_PLATFORM = 'codehost';

export type GitService = GitAsk['service'];

/** A parsed request target. `repository`: without `.git`. */
export type GitTarget = {
  repository: { owner: string; name: string };
  service: GitService;
  isAdvertisement: boolean;
};

const TARGET =
  /^\/git\/([A-Za-z0-9._-]{1,100})\/([A-Za-z0-9._-]{1,104})\/(info\/refs|git-upload-pack|git-receive-pack)(?:\?(.*))?$/;
const SERVICES: readonly GitService[] = ['git-upload-pack', 'git-receive-pack'];

/**
 * Parses the undecoded target of the request line; anything but exactly one of the three routes is unknown.
 *
 * @returns `unknown`: no such route; `malformed`: a route without its `service`
 */
export function readTarget(method: string, target: string): GitTarget | 'unknown' | 'malformed' {
  const [, owner = '', written = '', last, query] = TARGET.exec(target) ?? [];
  const name = written.endsWith('.git') ? written.slice(0, -4) : written;
  if (last === undefined || [owner, name].some((part) => part === '' || part === '.' || part === '..'))
    return 'unknown';
  if (name.length > 100) return 'unknown';
  const repository = { owner, name };
  if (last === 'info/refs') {
    if (method !== 'GET' && method !== 'HEAD') return 'unknown';
    const service = SERVICES.find((one) => query === `service=${one}`);
    return service === undefined ? 'malformed' : { repository, service, isAdvertisement: true };
  }
  const service = SERVICES.find((one) => one === last);
  if (method !== 'POST' || service === undefined) return 'unknown';
  return query === undefined ? { repository, service, isAdvertisement: false } : 'malformed';
}

/** `owner/repo`. */
export const nameOf = ({ repository: { owner, name } }: Pick<GitTarget, 'repository'>): string => `${owner}/${name}`;

/** The endpoint without its query, as it is judged and recorded. */
export const endpointOf = (target: GitTarget): string =>
  `/git/${nameOf(target)}/${target.isAdvertisement ? 'info/refs' : target.service}`;

/** The scope that a service needs. */
export const scopeOf = (service: GitService): string =>
  service === 'git-upload-pack' ? `${GIT_PLATFORM}:contents.read` : `${GIT_PLATFORM}:contents.write`;

/** The media type of a service's request or answer. */
export const mediaTypeOf = (service: GitService, what: 'request' | 'result' | 'advertisement'): string =>
  `application/x-${service}-${what}`;

/** Client headers that are forwarded to the code host. */
export type GitHeaders = { gitProtocol: string | undefined; userAgent: string | undefined };

/** Builds the call for `perform`. `connectionId`: the connection to use, if not the default. */
export function gitCall(
  target: GitTarget,
  read: { step: GitStep; refs: readonly GitRef[]; push?: Push; body?: GitRequest['body'] },
  headers: GitHeaders,
  connectionId: string | undefined,
): Pick<CallRequest, 'asked'> & { git: GitRequest } {
  const { repository, service, isAdvertisement } = target;
  return {
    asked: {
      ok: true,
      action: {
        platform: GIT_PLATFORM,
        endpoint: `${endpointOf(target)}${isAdvertisement ? `?service=${service}` : ''}`,
        method: isAdvertisement ? 'GET' : 'POST',
        scope: scopeOf(service),
        ...(connectionId !== undefined && { connection_id: connectionId }),
      },
    },
    git: {
      ask: { service, refs: read.refs, ...(read.push && { pushOptions: read.push.options }) },
      step: read.step,
      repository,
      headers: sentHeaders(target, headers),
      answerType: mediaTypeOf(service, isAdvertisement ? 'advertisement' : 'result'),
      ...(read.body && { body: read.body }),
      ...(read.push && { report: new ReportReader(read.push) }),
    },
  };
}

/** gitprotocol-http: code hosts distinguish git from browsers by this header. */
const USER_AGENT = 'git/agent-broker';
const GIT_AGENT = /^git\/[A-Za-z0-9._+-]{1,60}$/;
const GIT_PROTOCOL = /^version=[012]$/;

function sentHeaders(
  { service, isAdvertisement }: GitTarget,
  { gitProtocol = '', userAgent = '' }: GitHeaders,
): Record<string, string> {
  return {
    'user-agent': GIT_AGENT.test(userAgent) ? userAgent : USER_AGENT,
    accept: isAdvertisement ? '*/*' : mediaTypeOf(service, 'result'),
    ...(!isAdvertisement && { 'content-type': mediaTypeOf(service, 'request') }),
    ...(GIT_PROTOCOL.test(gitProtocol) && { 'git-protocol': gitProtocol }),
  };
}
