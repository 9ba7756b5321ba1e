/** Sends an allowed call and streams its answer. */

import { sha256Hex } from '../crypto/canonical.ts';
import type { Received } from '../egress/answers/answer.ts';
import { bytesOfHeader } from '../egress/answers/answer-headers.ts';
import type { CredentialPatterns } from '../egress/credential-search/patterns.ts';
import type { Answer, Outbound, StreamedAnswer } from '../egress/dispatcher.ts';
import { STREAM_IDLE_MS, type StreamRequest } from '../egress/outbound-request.ts';
import { type Followed, type FollowRule, sendFollowing } from '../egress/redirect.ts';
import { StreamBroken, type StreamEnding, type Transferred } from '../egress/streamed-body.ts';
import { OutboundFault } from '../egress/unreachable.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { Mask } from '../policy/masks/mask.ts';
import { withEndHeldBack } from '../runtime/held-back-end.ts';
import { type Call, familyOf, holderOf, idleMsOf } from './call.ts';
import type { Credential } from './credentials.ts';
import type { Forwarded } from './forwarded.ts';
import { type MaskedStream, maskStream, readWhole } from './mask-stream.ts';
import type { StreamConsumer, StreamedPart } from './streamed.ts';

/** Hop-by-hop headers (RFC 9110 §7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Longest 401 body that is buffered, because the call may be retried with another credential. */
const MAX_REFUSAL_BYTES = 1024 * 1024;

/** A streamed call: its taker, and the credential that was injected. */
export type Streaming = { outbound: Outbound; call: Call; taker: StreamConsumer; credential: Credential };

/** Returns the idle timeout of a streamed answer: the connection's, the platform's, or the default. */
export const timeoutsOf = (
  connection: Pick<ConnectionFacts, 'idleMs'>,
  manifest: Pick<Manifest, 'idle_seconds'>,
): Required<Pick<StreamRequest, 'idleTimeoutMs'>> => ({
  idleTimeoutMs: idleMsOf(connection, manifest) ?? STREAM_IDLE_MS,
});

/** Sends the call once, and streams the answer to the taker. Resolves when that has ended. */
export async function forwardStream(
  streaming: Streaming,
  request: StreamRequest,
  follow?: () => FollowRule | undefined,
): Promise<Forwarded> {
  const answer = await openStream(streaming, request, follow);
  return answer.kind === 'stream' ? await passOn(streaming, answer) : answer;
}

/** The head of an answer whose body was not read yet. */
export type OpenedStream = StreamedAnswer & { followed?: Followed };

/** Sends the call once, and follows one redirect when `follow` says so. A 401 of the platform is returned as a whole answer. */
export async function openStream(
  { outbound, call, credential }: Streaming,
  request: StreamRequest,
  follow?: () => FollowRule | undefined,
): Promise<OpenedStream | Extract<Forwarded, { kind: 'unreachable' | 'answer' }>> {
  const family = familyOf(call.who);
  const { lease, left, beforeEnd } = call;
  const search = { ...request.search, credential: credential.streamed };
  const held = beforeEnd &&
    isStreamedBody(request.body) && { body: withEndHeldBack(request.body, () => mayEnd(call, beforeEnd)) };
  const sent = { ...request, ...held, family, lease, left, search };
  const { stream: send } = outbound;
  const { answer, followed } = follow
    ? await sendFollowing(sent, follow, { send, leave: ({ body }) => body.return() })
    : { answer: await send(sent) };
  const way = followed && { followed };
  if (answer.kind === 'unreachable')
    return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent, ...way };
  if (followed) return { ...answer, followed };
  if (answer.status !== 401) return answer;
  const received: Extract<Answer, { kind: 'answer' }> = { ...answer, kind: 'answer', ...(await readRefusal(answer)) };
  return {
    kind: 'answer',
    status: 401,
    read: await outbound.read(received, credential.patterns, holderOf(call.who), call.mask),
  };
}

const isStreamedBody = (body: StreamRequest['body']): body is AsyncIterable<Uint8Array> =>
  typeof body === 'object' && Symbol.asyncIterator in body;

/** Throws when the body may not be completed; the call is then stopped. */
const mayEnd = async ({ lease }: Call, whyNot: NonNullable<Call['beforeEnd']>): Promise<void> => {
  const why = await whyNot().catch(() => LOOKUP_FAILED);
  if (!why) return;
  lease.stop(why);
  throw new OutboundFault('access_ended');
};

const LOOKUP_FAILED: AccessEnded = {
  reason: 'denied_by_policy',
  detail:
    'a rule depends on earlier calls of the agent that were made while this request was sent, and they could not be looked up',
};

/** Streams an answer to the taker. Resolves when that has ended. */
export async function passOn(
  streaming: Streaming,
  answer: OpenedStream,
): Promise<Extract<Forwarded, { kind: 'streamed' }>> {
  const { call, taker, credential } = streaming;
  let found: StreamEnding | undefined;
  const { headers, redacted } = passedOn(answer.headers, credential.patterns);
  const { makeDurable = async () => {}, mask } = call;
  let masked: MaskedStream | undefined;
  try {
    const { status, followed } = answer;
    masked = mask && (await maskedOf(streaming, { ...answer, headers }, mask));
    if (mask && !masked) throw new StreamBroken('not_masked');
    const passed = masked ?? { headers, body: answer.body };
    const isClean = (whole: Buffer) => isCleanOf(streaming, { status, headers: passed.headers, body: whole });
    const taken = await taker({
      auditId: call.record.auditId,
      status,
      headers: passed.headers,
      body: passed.body,
      followed: followed?.host,
      maskedBy: masked?.hasAny ? (mask?.rules ?? []) : [],
      makeDurable,
      isClean,
    });
    if (taken === 'blocked') found = 'credential_found';
    // A taker that returned before the end no longer reads.
    if (answer.body.ended === undefined) await answer.body.return();
  } catch (error) {
    if (error instanceof StreamBroken && error.ended === 'not_masked') found = error.ended;
    await answer.body.return();
    if (!(error instanceof StreamBroken) && answer.body.ended === undefined) throw error;
  }
  const received = await answer.body.taken();
  const streamed = {
    ended: found ?? answer.body.ended ?? 'client_closed',
    received: masked ? masked.received() : mask ? NOTHING_TRANSFERRED : received,
    sent: await answer.uploaded(),
    redacted: redacted || answer.redacted(),
    masked: masked?.masked(),
  };
  return { kind: 'streamed', status: answer.status, streamed, ...(answer.followed && { followed: answer.followed }) };
}

const NOTHING_TRANSFERRED: Transferred = { bytes: 0, sha256: sha256Hex('') };

const maskedOf = (
  { outbound, call, credential: { patterns } }: Streaming,
  answer: StreamedAnswer,
  mask: Mask,
): Promise<MaskedStream | undefined> =>
  maskStream(answer, mask, {
    read: (whole) => outbound.read(whole, patterns, holderOf(call.who), mask),
    count: (bytes) => call.lease.count(bytes),
  });

/** Checks a complete body in all views, as for a buffered answer; a stream cannot be checked that way. */
async function isCleanOf({ outbound, credential, call }: Streaming, whole: Received): Promise<boolean> {
  const type = whole.headers['content-type'];
  const bare = { ...whole, headers: type === undefined ? {} : { 'content-type': type } };
  const read = await outbound.read(bare, credential.patterns, holderOf(call.who));
  return read.kind === 'data' && !read.redacted;
}

/** Returns the headers and the body of a 401. A body that is too long, or broken off, is left out: the status alone says that the credential was refused. */
async function readRefusal({ headers, body }: StreamedAnswer): Promise<Pick<Received, 'headers' | 'body'>> {
  try {
    const whole = await readWhole(body, MAX_REFUSAL_BYTES);
    if (whole) return { headers, body: whole };
  } catch (error) {
    if (!(error instanceof StreamBroken)) throw error;
  }
  const { 'content-type': _type, 'content-encoding': _encoding, ...rest } = headers;
  return { headers: rest, body: Buffer.alloc(0) };
}

/** Returns the headers of an answer that are passed on. `redacted`: some held the credential and were dropped. */
export function passedOn(
  headers: StreamedAnswer['headers'],
  patterns: CredentialPatterns,
): Pick<StreamedPart, 'headers'> & { redacted: boolean } {
  const named = new Set(
    String(headers.connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  const all = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.has(name));
  // Search all headers as one text, because a search costs more than the few bytes of a header; search them singly only after a hit.
  const isClean = !patterns.isIn(textOf(all));
  const clean = isClean ? all : all.filter((header) => !patterns.isIn(textOf([header])));
  return { headers: Object.fromEntries(clean), redacted: clean.length < all.length };
}

const textOf = (headers: readonly (readonly [string, unknown])[]): Buffer =>
  bytesOfHeader(headers.map(([name, value]) => `${name}: ${[value].flat().join('\n')}`).join(';\n'));
