/** Reads a raw request: its headers and its body, or the reason why it is not a valid call. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { RawToken } from '../../auth/raw-token.ts';
import { type BodyOf, isKept, judgeInTurns, TOO_LONG, whyUnread, whyUnsearchable } from '../../calls/judge-body.ts';
import type { Malformed } from '../../calls/malformed.ts';
import {
  isRefusedName,
  type MethodSearch,
  methodField,
  methodSearch,
  typeAsRead,
  whyNotSent,
} from '../../calls/method-search.ts';
import { bytesOf, isLong, type RawRequest } from '../../calls/raw-request.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import type { FindForms } from '../../egress/credential-search/form-search.ts';
import { rawSearch } from '../../egress/raw-search.ts';
import type { BodySigning } from '../../egress/sign-request.ts';
import { OutboundFault } from '../../egress/unreachable.ts';
import { isStored, rawBodyKinds } from '../../policy/body-kinds.ts';
import type { PlatformRules } from '../../policy/platform-rules.ts';
import { MalformedChunks, withoutAwsChunked } from '../../proxy/aws-chunked.ts';
import type { RawTarget } from '../../proxy/raw-target.ts';
import { withEndHeldBack } from '../../runtime/held-back-end.ts';
import type { Parsing } from '../../runtime/long-bodies.ts';
import { inSlices } from '../../runtime/pace.ts';
import { present } from '../../runtime/present.ts';
import { LONG_WAIT_MS } from '../../runtime/waits.ts';
import { BodyNotTaken, takeRawBody } from './body.ts';
import { unzipped } from './unzip.ts';

/** `isLate`: reading the body took long. `sent`: the client's headers; the platform's manifest decides which are forwarded. */
export type ReadRequest = { isLate: boolean; sent: { headers: Record<string, string> } } & (
  | { ok: true; raw: RawRequest }
  | ({ ok: false } & Pick<Malformed, 'detail'> & { code: NonNullable<Malformed['code']> })
);

type ReadOptions = {
  request: IncomingMessage;
  response: ServerResponse;
  lease: CallLease;
  target: RawTarget;
  token: RawToken;
  /** Whether the platform's authentication signs the body. */
  signing: BodySigning;
  parsing: Parsing;
  /** The header of the platform's own key, in lower case, if it is not Authorization: what the client sends there is not forwarded. */
  keyHeader: string | undefined;
  /** The platform's rules. */
  rules: PlatformRules | undefined;
};

/**
 * Reads the parts of a request that are judged. Takes a slot among the calls before the body: slow senders could otherwise hold any number of
 * connections.
 */
export async function readRequest({
  request,
  response,
  lease,
  target,
  token: found,
  signing,
  parsing,
  keyHeader,
  rules,
}: ReadOptions): Promise<ReadRequest> {
  const begun = performance.now();
  const { method = '' } = request;
  const { token } = found;
  const sent = { headers: headersOf(request.headers, found.header) };
  const ended = (
    of: { ok: true; raw: RawRequest } | { ok: false; code: NonNullable<Malformed['code']>; detail: string },
  ): ReadRequest => ({
    ...of,
    sent,
    isLate: performance.now() - begun > LONG_WAIT_MS,
  });
  const refuse = (detail: string, code: NonNullable<Malformed['code']> = 'invalid_request') =>
    ended({ ok: false, code, detail });
  if (target.endpoint.includes(token))
    return refuse('The URL contains the token of the agent: send the token in a header only.');
  const bodyHeaders = bodyHeadersOf(request.headers);
  // Some clients send their key in the header of the platform and in Authorization.
  if (Object.entries(sent.headers).some(([name, value]) => name !== keyHeader && value.includes(token)))
    return refuse('The token of the agent is in another header as well.');
  if (!lease.begin())
    return refuse(
      'Too many calls of this agent and its children, or of all agents, are under way. Try again.',
      'too_many_calls',
    );
  if (request.headers.expect !== undefined) response.writeContinue();
  let body: RawRequest['body'];
  try {
    body = await takeRawBody(request, signing, lease);
  } catch (error) {
    if (error instanceof MalformedChunks) return refuse(error.message);
    if (error instanceof BodyNotTaken) return refuse(error.message, error.code);
    if (!request.destroyed) throw error;
    return refuse(
      'The request broke off before it was complete, or stalled for a minute. Nothing was forwarded.',
      'request_cut',
    );
  }
  if ((method === 'GET' || method === 'HEAD') && body.kind !== 'none') return refuse(`A ${method} carries no body.`);
  const received = { method: method as RawRequest['method'], bodyHeaders, body };
  if (body.kind === 'none') return ended({ ok: true, raw: { ...received, bodyHeaders: {}, judged: undefined } });
  const asRead = typeAsRead(method, bodyHeaders['content-type']);
  const refused = rules?.refused.body;
  const at = { method, path: target.endpoint.split('?', 1)[0] ?? '' };
  const of = {
    asRead,
    refused,
    isStored: rules !== undefined && isStored(rules, at),
    ...(rules && { kinds: rawBodyKinds(rules, at) }),
  };
  const raw = await unzipped(received, of, lease);
  if (typeof raw === 'string') return refuse(raw);
  const bytes = bytesOf(raw.body);
  if (bytes?.includes(token))
    return refuse('The body contains the token of the agent: send the token in a header only.');
  if (isLong(raw.body)) {
    const searched = whyUnsearchable(bodyHeaders, of) ?? (await searchedBody(raw.body, of, parsing));
    if (typeof searched === 'string') return refuse(searched);
    return ended({
      ok: true,
      raw: { ...raw, body: withoutToken(searched, token), judged: whyUnread(bodyHeaders) ?? TOO_LONG },
    });
  }
  const judged = await judgeInTurns(raw.bodyHeaders, present(bytes, 'body'), parsing, of);
  return judged.ok ? ended({ ok: true, raw: { ...raw, judged: judged.judged } }) : refuse(judged.detail, judged.code);
}

/**
 * Searches a body that is too long to be judged. Returns an error text when it names a method or refused content; a streamed body breaks off there.
 */
async function searchedBody(
  body: Extract<RawRequest['body'], { kind: 'long' | 'stream' }>,
  of: BodyOf & { asRead: string },
  parsing: Parsing,
): Promise<RawRequest['body'] | string> {
  const { asRead, refused } = of;
  if (isKept(asRead, of)) return body;
  if (body.kind === 'long') {
    const { bytes } = body;
    const found = await parsing.inTurn((rest) => inSlices(methodField(asRead, bytes, refused), rest));
    return found === undefined ? body : whyNotSent(found, refused);
  }
  const search = methodSearch(asRead, refused);
  if (search === undefined) return body;
  const check = (found: string | undefined): void => {
    if (found === undefined) return;
    throw new OutboundFault(isRefusedName(found, refused) ? 'form_names_refused' : 'form_names_method');
  };
  const open = () => {
    const pieces = body.open();
    const end = () => check(search.end());
    return pieces && withEndHeldBack(searched(pieces, search, check, parsing), end);
  };
  return { ...body, open };
}

/** @param check throws for a name that was found */
async function* searched(
  pieces: AsyncIterable<Uint8Array>,
  search: MethodSearch,
  check: (found: string | undefined) => void,
  parsing: Parsing,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    check(await parsing.inTurn(async () => search.push(piece)));
    yield piece;
  }
}

/** Makes a streamed body break off where the token begins. */
function withoutToken(body: RawRequest['body'], token: string): RawRequest['body'] {
  if (body.kind !== 'stream') return body;
  const find = rawSearch([Buffer.from(token)]);
  const open = () => {
    const pieces = body.open();
    return pieces && upTo(find, pieces);
  };
  return { ...body, open };
}

/** Holds back bytes that may be the beginning of the token until the next piece. */
async function* upTo(find: FindForms, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting = Buffer.alloc(0);
  for await (const piece of pieces) {
    // Not copied when nothing waits: a long body would take twice as much memory until the next collection.
    const bytes =
      waiting.length > 0 ? Buffer.concat([waiting, piece]) : Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const { spans, free } = find(bytes, false);
    if (spans.length > 0) throw new OutboundFault('body_holds_token');
    if (free > 0) yield bytes.subarray(0, free);
    waiting = Buffer.from(bytes.subarray(free));
  }
  if (waiting.length > 0) yield waiting;
}

/** Returns the headers as sent, joined into one value per name, without the one that holds the token. */
const headersOf = (headers: IncomingHttpHeaders, place: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || name === place || name === 'authorization' ? [] : [[name, [value].flat().join(', ')]],
    ),
  );

function bodyHeadersOf({
  'content-type': type,
  'content-encoding': coding,
}: IncomingHttpHeaders): Record<string, string> {
  const left = coding === undefined ? undefined : withoutAwsChunked(coding);
  return {
    ...(type !== undefined && { 'content-type': type }),
    ...(left !== undefined && { 'content-encoding': left }),
  };
}
