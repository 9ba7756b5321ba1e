/**
 * Follows a redirect of a read (RFC 9110 section 15.4) when the platform's manifest says so: once, without the credential, to https and a
 * public address. The target is signed in its query, which is a credential of the platform's: only its host is kept.
 */
import type { ResponseHeaders } from './exchange.ts';
import type { RequestHead } from './outbound-request.ts';
import { ENDED_HERE, type Unreachable, unreachable } from './unreachable.ts';

/** `baseUrl`: of the platform. `named`: other origins that its manifest names, which the operator may have listed although private. */
export type FollowRule = {
  baseUrl: string;
  named: readonly string[];
  holdsCredential(text: string): boolean;
};

/** `host`: where the answer came from, or would have. `status`: of the redirect. */
export type Followed = { host: string; status: number };

type Head = { status: number; headers: ResponseHeaders };

const FOLLOWED = new Set([302, 303, 307, 308]);
const REDIRECTS = new Set([301, ...FOLLOWED]);

/** Request headers that are sent to the target: those that describe the wanted answer. Others are not meant for another host. */
const FORWARDED_HEADERS = new Set(
  `accept accept-encoding accept-language if-match if-modified-since if-none-match if-range if-unmodified-since range
  user-agent`.split(/\s+/),
);

/**
 * Sends a request, and once more to where its answer redirects it. An answer without a redirect, or with one to the platform itself, is
 * returned as it is: the platform's own endpoints are judged by themselves.
 *
 * @param ruleOf returns how to follow a redirect; undefined when it is not followed
 * @param leave discards an answer whose body is not read
 */
export async function sendFollowing<Request extends RequestHead, Answer extends Head & { kind: string }>(
  request: Request,
  ruleOf: () => FollowRule | undefined,
  { send, leave }: { send(request: Request): Promise<Answer | Unreachable>; leave(answer: Answer): Promise<unknown> },
): Promise<{ answer: Answer | Unreachable; followed?: Followed }> {
  const first = await send(request);
  if (isUnreachable(first)) return { answer: first };
  const rule = FOLLOWED.has(first.status) ? ruleOf() : undefined;
  const target = rule && readTarget(first, request.url, rule);
  if (!rule || target === undefined) return { answer: first };
  await leave(first);
  const followed = { host: target.host, status: first.status };
  if (!target.ok) return { answer: unreachable('redirect_refused', true, target.why), followed };
  const second = await send({
    ...request,
    url: target.url,
    headers: headersFor(request, rule),
    publicOnly: !rule.named.some((one) => URL.parse(one)?.origin === target.url.origin),
  });
  if (isUnreachable(second)) return { answer: ofTarget(second, target.host), followed };
  if (!REDIRECTS.has(second.status)) return { answer: second, followed };
  await leave(second);
  return { answer: unreachable('redirected_again', true), followed };
}

type Target = { host: string } & ({ ok: true; url: URL } | { ok: false; why: string });

/** Parses the target of a redirect. Undefined when there is nothing to follow. `why`: a code. */
function readTarget({ headers }: Head, from: URL, rule: FollowRule): Target | undefined {
  const [location, another] = [headers.location ?? []].flat();
  if (location === undefined) return undefined;
  const url = URL.parse(location, from.href);
  if (url === null) return { ok: false, host: '', why: 'malformed' };
  const refuse = (why: string): Target => ({ ok: false, host: url.hostname, why });
  if (another === undefined && isBelow(url, new URL(rule.baseUrl))) return undefined;
  if (rule.holdsCredential(location) || rule.holdsCredential(url.href))
    return { ok: false, host: '', why: 'credential' };
  if (another !== undefined) return refuse('ambiguous');
  if (url.protocol !== 'https:') return refuse('scheme');
  if (url.username !== '' || url.password !== '') return refuse('userinfo');
  url.hash = '';
  return { ok: true, host: url.hostname, url };
}

/** Whether a URL belongs to the platform: same origin, below its base path. */
export function isBelow(url: URL, base: URL): boolean {
  const path = base.pathname.replace(/\/+$/, '');
  return url.origin === base.origin && (url.pathname === path || url.pathname.startsWith(`${path}/`));
}

const headersFor = ({ headers }: RequestHead, rule: FollowRule): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => FORWARDED_HEADERS.has(name) && !rule.holdsCredential(value)),
  );

/** The failure of a request to the target of a redirect; `sent` is true, because the platform was reached. */
function ofTarget({ code, detail, cause }: Unreachable, host: string): Unreachable {
  if (code === 'address_refused' || code === 'bad_request') return unreachable('redirect_refused', true, cause);
  const said = { ...unreachable(code, true, cause), detail: `The platform redirected this read to ${host}. ${detail}` };
  return ENDED_HERE.some((one) => one === code) ? unreachable(code, true, cause) : said;
}

const isUnreachable = (answer: { kind: string }): answer is Unreachable => answer.kind === 'unreachable';
