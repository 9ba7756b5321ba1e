/**
 * Builds the HTTP request of a governed call from the manifest, the agent's request and the credential, and checks whether a secret can be
 * sent.
 */
import { textOf } from '../../json/text-of.ts';
import type { Secret } from '../crypto/secret.ts';
import { INSTALLATION_ID } from '../platforms/auth.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { isParted, readSecretParts } from '../platforms/secret-parts.ts';
import { joinUpstreamUrl } from '../policy/endpoint.ts';
import type { Instant, JsonObject, Method } from '../policy/facts.ts';
import { foldName, parameterNames } from '../policy/names.ts';
import { encodeForm } from './credential-search/form.ts';
import { isHeaderValue, type OutboundRequest } from './outbound-request.ts';
import { isSigning, signatureHeaders, signRequest } from './sign-request.ts';
import type { SigningAuth } from './signable.ts';

/** Where the credential is placed. */
export type AuthPlacement =
  /** `authorization: Bearer <credential>` (RFC 6750 §2.1). */
  | { type: 'bearer' }
  /** `authorization: Basic …` (RFC 7617); the credential is `user:password`, or only the user when it has no colon. */
  | { type: 'basic' }
  /** `prefix` is put before the credential literally, trailing spaces included. */
  | { type: 'header'; name: string; prefix?: string | undefined }
  | { type: 'query'; name: string }
  /** The request is signed; the credential has several parts. */
  | SigningAuth;

export type RestPlatform = {
  baseUrl: string;
  /** The base URL is the complete address, and `/` is the only endpoint (GraphQL). */
  wholeAddress?: boolean | undefined;
  /** Headers that are always sent; they override the agent's. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Headers that are sent unless the agent sets them. */
  defaultHeaders?: Readonly<Record<string, string>> | undefined;
  /** Headers that are never taken from an agent. */
  forbiddenHeaders?: readonly string[] | undefined;
  auth: AuthPlacement;
  /** Encoding of the body; JSON by default. */
  body?: 'json' | 'form' | undefined;
};

export type RestCall = {
  method: Method | 'HEAD';
  /** In canonical form, as `parseEndpoint` returned it. */
  endpoint: { path: string; query: string };
  /** The agent's headers, filtered by `filterAgentHeaders`. */
  headers: Readonly<Record<string, string>>;
  body?: JsonObject | undefined;
  /** The body is a stream that is attached later and not known yet: a signature does not cover it. */
  unreadBody?: boolean | undefined;
  /** Replaces `body`: bytes that are sent unchanged, described by `headers`. */
  asItIs?: { headers: Readonly<Record<string, string>>; bytes: Buffer | undefined };
};

export type BuiltRequest =
  | { ok: true; request: OutboundRequest }
  /** `detail` is for the agent (`endpoint_refused`, `body_refused`) or the owner (`credential_malformed`). */
  | { ok: false; error: 'endpoint_refused' | 'body_refused' | 'credential_malformed'; detail: string };

const USER_AGENT = 'agent-broker';
const MALFORMED = 'the stored credential is empty or contains characters that no header can carry; connect it again';

/** Folded names of headers that agents cannot set: the fixed ones, the forbidden ones and the one that authenticates. */
export function platformHeaderNames(
  platform: Pick<RestPlatform, 'headers' | 'forbiddenHeaders' | 'auth'>,
): Set<string> {
  const { auth, headers = {}, forbiddenHeaders = [] } = platform;
  const names = [...Object.keys(headers), ...forbiddenHeaders, ...(isSigning(auth) ? signatureHeaders(auth) : [])];
  return new Set([...names, auth.type === 'header' ? auth.name : 'authorization'].map(foldName));
}

/** Builds the request with its credential. Signing comes last, because the request must not change afterwards. */
export async function buildRequest(
  platform: RestPlatform,
  call: RestCall,
  credential: Secret,
  now: Instant,
): Promise<BuiltRequest> {
  const { auth } = platform;
  const built = buildUnsigned(platform, call, credential);
  if (!built.ok || !isSigning(auth)) return built;
  const { url, method, headers, body } = built.request;
  const payload = call.unreadBody ? ({ kind: 'unread' } as const) : ({ kind: 'bytes', bytes: body } as const);
  const signed = await signRequest({ url, method, headers, payload }, auth, credential, now);
  if (!signed.ok) return signed;
  return { ok: true, request: { ...built.request, headers: { ...headers, ...signed.headers } } };
}

/**
 * Builds the request. Headers are a new lower-case map: defaults, then the agent's, the platform's and the broker's, so that the credential
 * appears exactly once. The URL is base path + endpoint, byte for byte, or the base URL itself when that is the complete address, followed
 * by the credential for `query` placement. With `body: 'form'` see `encodeForm`.
 */
function buildUnsigned(platform: RestPlatform, call: RestCall, credential: Secret): BuiltRequest {
  const refuse = (error: 'endpoint_refused' | 'body_refused' | 'credential_malformed', detail: string) =>
    ({ ok: false, error, detail }) as const;
  const { auth } = platform;
  let url = upstreamUrl(platform, call.endpoint);
  if (url === undefined) return refuse('endpoint_refused', 'the endpoint does not fit the base URL of the platform');
  if (call.method === 'GET' && call.body !== undefined) return refuse('body_refused', 'a GET carries no data');

  const headers: Record<string, string> = { 'user-agent': USER_AGENT };
  for (const [name, value] of Object.entries(platform.defaultHeaders ?? {})) headers[name.toLowerCase()] = value;
  Object.assign(headers, call.headers);
  for (const [name, value] of Object.entries(platform.headers ?? {})) headers[name.toLowerCase()] = value;

  const secret = credential.reveal();
  if (secret === '' || !secret.isWellFormed()) return refuse('credential_malformed', MALFORMED);
  if (auth.type === 'query') {
    if (namesParameter(url, auth.name))
      return refuse('endpoint_refused', `the query must not name ${auth.name}; leave it out`);
    url = new URL(
      `${url.href}${url.search === '' ? '?' : '&'}${encodeURIComponent(auth.name)}=${encodeURIComponent(secret)}`,
    );
  } else if (!isSigning(auth)) {
    const value = headerCredential(auth, secret);
    if (!isHeaderValue(value)) return refuse('credential_malformed', MALFORMED);
    headers[auth.type === 'header' ? auth.name.toLowerCase() : 'authorization'] = value;
  }

  const request: OutboundRequest = { url, method: call.method, headers };
  if (call.asItIs !== undefined) {
    Object.assign(headers, call.asItIs.headers);
    if (call.asItIs.bytes !== undefined) request.body = call.asItIs.bytes;
    return { ok: true, request };
  }
  if (call.body === undefined) return { ok: true, request };
  if (platform.body === 'form') {
    const form = encodeForm(call.body);
    if (!form.ok) return refuse('body_refused', `data: ${form.error}`);
    headers['content-type'] = 'application/x-www-form-urlencoded';
    request.body = form.body;
  } else {
    headers['content-type'] = 'application/json';
    request.body = textOf(call.body);
  }
  return { ok: true, request };
}

function upstreamUrl({ baseUrl, wholeAddress }: RestPlatform, endpoint: RestCall['endpoint']): URL | undefined {
  const joined = joinUpstreamUrl(baseUrl, endpoint);
  if (joined === undefined || wholeAddress !== true) return joined;
  return endpoint.path === '/' && endpoint.query === '' ? new URL(baseUrl) : undefined;
}

function headerCredential(auth: Exclude<AuthPlacement, { type: 'query' } | SigningAuth>, secret: string): string {
  if (auth.type === 'bearer') return `Bearer ${secret}`;
  if (auth.type === 'header') return `${auth.prefix ?? ''}${secret}`;
  return `Basic ${Buffer.from(secret.includes(':') ? secret : `${secret}:`).toString('base64')}`;
}

function namesParameter(url: URL, name: string): boolean {
  if (url.search === '') return false;
  const folded = foldName(name);
  return [...url.searchParams.keys()].some((key) => parameterNames(key).includes(folded));
}

/**
 * Returns where a platform's credential is placed. What OAuth consent, an App, a client or a service account yields is an access token,
 * which is sent as a bearer token.
 */
export function placementOf(auth: Manifest['auth']): AuthPlacement {
  switch (auth.type) {
    case 'bearer':
    case 'oauth2':
    case 'app':
    case 'client_credentials':
    case 'service_account':
      return { type: 'bearer' };
    case 'basic':
      return { type: 'basic' };
    case 'aws_sigv4':
    case 'hmac':
      return auth;
    case 'header':
      return { type: 'header', name: auth.name, prefix: auth.prefix };
    case 'query':
      return { type: 'query', name: auth.name };
  }
}

/**
 * Returns why a secret cannot be sent to a platform, as a phrase that follows "the secret" and reveals nothing of it, such as `ends with a
 * space`; undefined when it can. Basic and query credentials are encoded, so any well-formed text can be sent.
 */
export function whyUnsendable(auth: Manifest['auth'], secret: string): string | undefined {
  if (secret === '') return 'is empty';
  if (!secret.isWellFormed()) return 'is not well-formed text (it has a lone surrogate)';
  if (auth.type === 'app')
    return INSTALLATION_ID.test(secret) ? undefined : "is not the number of an App's installation, such as 12345678";
  if (isParted(auth)) {
    const read = readSecretParts(auth, secret);
    return read.ok ? undefined : read.problem;
  }
  const { type } = placementOf(auth);
  if (type === 'basic' || type === 'query') return undefined;
  if (isHeaderValue(secret)) return undefined;
  if (/[\r\n]/.test(secret.replace(/[\r\n]+$/, ''))) return 'has several lines, which no header can carry';
  if (/[\r\n]$/.test(secret)) return 'ends with a line break, which no header can carry';
  if (/^[ \t]/.test(secret)) return 'begins with a space, which no header can carry';
  if (/[ \t]$/.test(secret)) return 'ends with a space, which no header can carry';
  if (/[^\x00-\x7f]/.test(secret)) return 'contains non-ASCII characters, which no header can carry';
  return 'contains a control character, which no header can carry';
}
