import type { Destination } from '../approvals/held-request.ts';
import type { Broker } from '../broker.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import { bytesOfHeader } from '../egress/answer-headers.ts';
import type { ExchangeLimits } from '../egress/buffered-exchange.ts';
import { type OutboundRequest, type StreamRequest, WHOLE_TOTAL_MS } from '../egress/outbound-request.ts';
import { encodeParts } from '../egress/parts.ts';
import { type FollowRule, sendFollowing } from '../egress/redirect.ts';
import { buildRequest, placementOf, type RestCall, type RestPlatform } from '../egress/rest.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { JsonObject } from '../policy/facts.ts';
import { isFollowed } from '../policy/followed.ts';
import { entryFor } from '../policy/operation-index.ts';
import { type Call, familyOf, idleMsOf } from './call.ts';
import type { Credential } from './credentials.ts';
import { forwardStream, patienceOf } from './forward-stream.ts';
import type { Forwarded } from './forwarded.ts';
import type { GivenBody } from './given-body.ts';
import { bodyToKeep, rawAnswer } from './raw-answer.ts';
import { bytesOf, type RawRequest } from './raw-request.ts';

/**
 * How long an approved call of the raw door may take in all: its answer is kept whole and not streamed, and may be as long in coming as
 * that of a model that was not held. As the most that `idle_seconds` can say.
 */
const MOST_REPLAY_MS = 600_000;

/** How a platform's manifest says that a request is written. */
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

/** The address of the platform that a call is sent to: some operations have one of their own. */
export const baseUrlOf = (
  { manifest, rules }: Pick<CompiledPlatform, 'manifest' | 'rules'>,
  { action: { method }, path }: Pick<Call, 'action' | 'path'>,
): string => entryFor(rules.baseUrls, { method, path })?.baseUrl ?? manifest.base_url;

/** Where a call would be sent, and how it would be written. A raw request is sent as its client wrote it, with the entry's headers. */
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

/** Sends the call once. Whatever comes back, the credential is not in it. */
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
  const family = familyOf(call.who);
  const follow = () => (isFollowed(rules, at) ? followRule({ ...manifest, base_url: baseUrl }, credential) : undefined);
  if (taker !== undefined) {
    const streamed = raw ? withPieces(built.request, raw) : built.request;
    if (streamed === undefined) return GONE;
    return await forwardStream(
      { outbound: broker.outbound, call, taker, credential },
      { ...streamed, connectionKey: connection.id, ...patienceOf(connection, manifest) },
      follow,
    );
  }
  const patience = raw
    ? { ...patienceOf(connection, manifest), totalTimeoutMs: MOST_REPLAY_MS }
    : wholeLimits(idleMsOf(connection, manifest));
  const request = { ...built.request, connectionKey: connection.id, family, lease: call.lease, ...patience };
  const { send } = broker.outbound;
  const { answer, followed } = await sendFollowing(request, follow, { send, leave: async () => {} });
  const way = followed && { followed };
  if (answer.kind === 'unreachable')
    return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent, ...way };
  const body = raw && bodyToKeep(answer);
  const { patterns } = credential;
  const read = await broker.outbound.read(answer, patterns, family, call.mask);
  const kept = raw && read.kind === 'data' && { raw: rawAnswer(answer, body, read, { patterns, mask: call.mask }) };
  return { kind: 'answer', status: answer.status, read, ...kept, ...way };
}

/** Of an answer that is kept whole, where its connection or platform says how long it may be silent: it may take as long in all. */
const wholeLimits = (idleMs: number | undefined): Partial<ExchangeLimits> =>
  idleMs === undefined ? {} : { idleTimeoutMs: idleMs, totalTimeoutMs: Math.max(idleMs, WHOLE_TOTAL_MS) };

/** The trace context, for a platform that is to have it: the broker's own, never that of whoever asked. */
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

/** The body as it is written. */
async function bodyOf({ given, action }: Call): Promise<Pick<RestCall, 'body' | 'asItIs'>> {
  const members = action.data as JsonObject | undefined;
  if (given === undefined || isInMembers(given.written)) return { body: members };
  if (given.written.as === 'bytes') return { asItIs: { headers: given.bodyHeaders, bytes: given.written.bytes } };
  const { type, bytes } = await encodeParts(members ?? {});
  return { asItIs: { headers: { 'content-type': type }, bytes } };
}

const isInMembers = (written: GivenBody['written']): written is { as: 'json' | 'form' } =>
  written.as === 'json' || written.as === 'form';

const asItIs = ({ bodyHeaders, body }: RawRequest): NonNullable<RestCall['asItIs']> => ({
  headers: bodyHeaders,
  bytes: bytesOf(body),
});

/** The request with a body that is passed on as it comes; undefined when that was taken before. */
function withPieces(request: OutboundRequest, { body }: RawRequest): StreamRequest | undefined {
  if (body.kind !== 'stream') return request;
  const pieces = body.open();
  return pieces && { ...request, body: pieces, ...(body.length !== undefined && { bodyBytes: body.length }) };
}

/** The first answer was that the token is over, and the body went with it. */
export const GONE: Forwarded = {
  kind: 'unreachable',
  code: 'body_gone',
  detail: 'The token of the connection was refreshed while the request was on its way. Try again.',
  sent: false,
};
