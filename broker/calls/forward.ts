import type { Destination } from '../approvals/held-request.ts';
import type { Broker } from '../broker.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import { bytesOfHeader } from '../egress/answers/answer-headers.ts';
import type { ExchangeLimits } from '../egress/buffered-exchange.ts';
import { type OutboundRequest, type StreamRequest, WHOLE_TOTAL_MS } from '../egress/outbound-request.ts';
import { encodeParts } from '../egress/parts.ts';
import { type FollowRule, sendFollowing } from '../egress/redirect.ts';
import { buildRequest, placementOf, type RestCall, type RestPlatform } from '../egress/rest.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { JsonObject } from '../policy/facts.ts';
import { isFollowed } from '../policy/follow-redirects.ts';
import { entryFor } from '../policy/operation-index.ts';
import type { ActionBody } from './action-body.ts';
import { type Call, familyOf, holderOf, idleMsOf } from './call.ts';
import type { Credential } from './credentials.ts';
import { forwardStream, timeoutsOf } from './forward-stream.ts';
import type { Forwarded } from './forwarded.ts';
import { bodyToKeep, rawAnswer } from './raw-answer.ts';
import { bytesOf, type RawRequest } from './raw-request.ts';

/**
 * Total timeout of an approved call through /proxy. Its answer is buffered instead of streamed, and may take as long as a streamed one of a
 * model. Equals the largest `idle_seconds`.
 */
const MAX_REPLAY_MS = 600_000;

/** How requests to a platform are written, from its manifest. */
export function restPlatform(manifest: Manifest): RestPlatform {
  return {
    baseUrl: manifest.base_url,
    wholeAddress: manifest.kind !== 'rest',
    headers: manifest.headers,
    defaultHeaders: manifest.default_headers,
    forbiddenHeaders: manifest.forbidden_headers,
    auth: placementOf(manifest.auth),
    body: manifest.body,
  };
}

/** Returns the base URL for a call: some operations have their own. */
const baseUrlOf = (
  { manifest, rules }: Pick<CompiledPlatform, 'manifest' | 'rules'>,
  { action: { method }, path }: Pick<Call, 'action' | 'path'>,
): string => entryFor(rules.baseUrls, { method, path })?.baseUrl ?? manifest.base_url;

/**
 * Where a call would be sent, and a hash of how it would be written. A raw request is sent as its client wrote it, plus the entry's
 * headers.
 */
export function destinationOf(
  { manifest, rules }: Pick<CompiledPlatform, 'manifest' | 'rules'>,
  call: Pick<Call, 'action' | 'path' | 'given' | 'raw'>,
): Destination {
  const { headers = {}, default_headers = {}, body = 'json' } = manifest;
  const as = call.raw ? null : (call.given?.written.as ?? body);
  return {
    address: baseUrlOf({ manifest, rules }, call),
    written: sha256Hex(canonicalJson({ as, headers, default_headers })),
  };
}

/** Sends the call once. The credential is removed from every answer. */
export async function forward(
  broker: Pick<Broker, 'clock' | 'outbound'>,
  { manifest, rules }: Pick<CompiledPlatform, 'manifest' | 'rules'>,
  call: Call,
  connection: ConnectionFacts,
  credential: Credential,
): Promise<Forwarded> {
  const { raw, taker, given } = call;
  const at = { method: call.action.method, path: call.path };
  const baseUrl = baseUrlOf({ manifest, rules }, call);
  const built = await buildRequest(
    { ...restPlatform(manifest), baseUrl, ...(given && isInMembers(given.written) && { body: given.written.as }) },
    {
      method: raw?.method ?? call.action.method,
      endpoint: { path: call.path, query: call.query },
      headers: { ...call.headers, ...traceHeaders(manifest, call) },
      ...(raw ? { asItIs: asItIs(raw), unreadBody: raw.body.kind === 'stream' } : await bodyOf(call)),
    },
    credential.secret,
    broker.clock(),
  );
  if (!built.ok) return { kind: 'refused_locally', error: built.error, detail: built.detail };
  // The body of a streamed raw request was counted when it was read.
  if (!(raw && taker)) call.lease.countBody(built.request.body);
  const family = familyOf(call.who);
  const follow = () => (isFollowed(rules, at) ? followRule({ ...manifest, base_url: baseUrl }, credential) : undefined);
  if (taker !== undefined) {
    const streamed = raw ? withPieces(built.request, raw) : built.request;
    if (streamed === undefined) return GONE;
    return await forwardStream(
      { outbound: broker.outbound, call, taker, credential },
      { ...streamed, connectionKey: connection.id, ...timeoutsOf(connection, manifest) },
      follow,
    );
  }
  const patience = raw
    ? { ...timeoutsOf(connection, manifest), totalTimeoutMs: MAX_REPLAY_MS }
    : wholeLimits(idleMsOf(connection, manifest));
  const request = { ...built.request, connectionKey: connection.id, family, lease: call.lease, ...patience };
  const { send } = broker.outbound;
  const { answer, followed } = await sendFollowing(request, follow, { send, leave: async () => {} });
  const way = followed && { followed };
  if (answer.kind === 'unreachable')
    return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent, ...way };
  const body = raw && bodyToKeep(answer);
  const { patterns } = credential;
  const read = await broker.outbound.read(answer, patterns, holderOf(call.who), call.mask);
  const kept = raw && read.kind === 'data' && { raw: rawAnswer(answer, body, read, { patterns, mask: call.mask }) };
  return { kind: 'answer', status: answer.status, read, ...kept, ...way };
}

/** Timeouts of a buffered answer when its connection or platform sets an idle timeout: the total timeout is at least as long. */
const wholeLimits = (idleMs: number | undefined): Partial<ExchangeLimits> =>
  idleMs === undefined ? {} : { idleTimeoutMs: idleMs, totalTimeoutMs: Math.max(idleMs, WHOLE_TOTAL_MS) };

/** The `traceparent` header for a platform that may have it: the broker's own, never the client's. */
export const traceHeaders = (
  { trace }: Pick<Manifest, 'trace'>,
  { traceparent }: Pick<Call, 'traceparent'>,
): { traceparent?: string } => (trace === true && traceparent !== undefined ? { traceparent } : {});

/** How a redirect of the platform is followed. */
const followRule = (manifest: Manifest, { patterns }: Credential): FollowRule => ({
  baseUrl: manifest.base_url,
  named: [manifest.base_url, ...(manifest.git_base_url === undefined ? [] : [manifest.git_base_url])],
  holdsCredential: (text) => patterns.isIn(Buffer.from(text)) || patterns.isIn(bytesOfHeader(text)),
});

/** Encodes the body. */
async function bodyOf({ given, action }: Call): Promise<Pick<RestCall, 'body' | 'asItIs'>> {
  const members = action.data as JsonObject | undefined;
  if (given === undefined || isInMembers(given.written)) return { body: members };
  if (given.written.as === 'bytes') return { asItIs: { headers: given.bodyHeaders, bytes: given.written.bytes } };
  const { type, bytes } = await encodeParts(members ?? {});
  return { asItIs: { headers: { 'content-type': type }, bytes } };
}

const isInMembers = (written: ActionBody['written']): written is { as: 'json' | 'form' } =>
  written.as === 'json' || written.as === 'form';

const asItIs = ({ bodyHeaders, body }: RawRequest): NonNullable<RestCall['asItIs']> => ({
  headers: bodyHeaders,
  bytes: bytesOf(body),
});

/** The request with a streamed body; undefined when the body was already consumed. */
function withPieces(request: OutboundRequest, { body }: RawRequest): StreamRequest | undefined {
  if (body.kind !== 'stream') return request;
  const pieces = body.open();
  return pieces && { ...request, body: pieces, ...(body.length !== undefined && { bodyBytes: body.length }) };
}

/** The first answer said that the token had expired, and the body had been consumed by it. */
export const GONE: Forwarded = {
  kind: 'unreachable',
  code: 'body_gone',
  detail: 'The token of the connection was refreshed while the request was being sent. Try again.',
  sent: false,
};
