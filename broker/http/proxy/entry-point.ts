/** Serves `/proxy`: a request of any client of a platform as a governed call, answered with the platform's own answer (docs/unmodified.md). */
import type { ServerResponse } from 'node:http';
import { AuditUnavailable, MaybeRecorded } from '../../audit/audit-unavailable.ts';
import type { StreamOutcome } from '../../audit/outcome.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { holderOf } from '../../calls/call.ts';
import { joinOf } from '../../calls/held-raw.ts';
import { perform, type StreamCallRequest } from '../../calls/perform.ts';
import { type RawRequest, rawAction } from '../../calls/raw-request.ts';
import { HeldUnread, orThrowHeldUnread, type Waited } from '../../calls/wait-for-decision.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import { namedByManifest, unsentHeaders } from '../../egress/client-headers.ts';
import { answeredHeaders } from '../../proxy/answer-headers.ts';
import { answerRewrite } from '../../proxy/answer-urls.ts';
import { traceparentOf } from '../authenticate.ts';
import { currentPrincipal } from '../current-principal.ts';
import { answerWhileSent, disconnectSignal, endIncomplete, linger } from '../disconnects.ts';
import { asRefusal, Refusal, UNREPEATED } from '../errors.ts';
import { send } from '../reply.ts';
import type { Context } from '../route.ts';
import { refusalOf, refusalReply } from '../route-steps.ts';
import { AnswerWriter } from '../stream-answer.ts';
import { writeBufferedAnswer } from './buffered-answer.ts';
import { headerProblem, notesOf, reasonOf } from './headers.ts';
import { accessEndedRefusal, heldRefusal, openFor, unreadRefusal, waitWithin, writeMade } from './held.ts';
import { type FoundConnection, lookUpConnection, type NoConnection } from './lookup.ts';
import { type AskedFor, outcomeRefusal, type RawRefusal, refusedReply, thrownRefusal } from './refusal.ts';
import { type ReadRequest, readRequest } from './request.ts';
import { askedByLabel } from './shape.ts';
import { isMethod, refuseMethod, refuseNoConnection } from './unsupported.ts';

type RawContext = Context<'raw'>;

/** How long, and up to which size, answers without a length are held back, so that short ones are sent only after they are recorded. */
const HELD_BACK_MS = 20;
const HELD_BACK_BYTES = 1024 * 1024;
/** Media types of answers that are meant to be read as a stream. */
const STREAMED_TYPES =
  /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl|json-seq|vnd\.amazon\.eventstream|grpc))/i;
type Asking = { who: AgentPrincipal };

/** Serves a request. Never rejects. */
export async function serveProxy(context: RawContext, response: ServerResponse): Promise<void> {
  const { request, services, correlationId } = context;
  const lease = services.budget.lease(holderOf(context.who));
  const left = disconnectSignal(response);
  let asked: FoundConnection | undefined;
  try {
    const found = await lookUpConnection(context);
    asked = 'missing' in found ? undefined : found;
    const refusal = !asked
      ? await refuseNoConnection(context, lease, found as NoConnection)
      : isMethod(request.method)
        ? await answer({ ...context, left }, response, lease, asked)
        : await refuseMethod(context, lease, asked);
    if (refusal) {
      answerWhileSent(request, response);
      send(response, refusedReply(refusal, context, askedFor(context, asked)), correlationId);
    }
  } catch (error) {
    fail(context, response, error, asked);
  } finally {
    lease.release();
    linger(request);
  }
}

/** Returns a refusal; undefined when the request was answered. */
async function answer(
  context: RawContext & { left: AbortSignal },
  response: ServerResponse,
  lease: CallLease,
  asked: FoundConnection,
): Promise<RawRefusal | undefined> {
  const { services, request } = context;
  const { target, connectionId, token, signing, loaded } = asked;
  const parsing = services.longBodies.parsing(holderOf(context.who), lease);
  const read = await readRequest({
    ...{ request, response, lease, target, token, signing, parsing },
    keyHeader: asked.keyHeader,
    rules: loaded.platform?.rules,
  });
  const who = read.isLate ? await currentPrincipal(context, asked.platform) : context.who;
  const idempotencyKey = request.headers['idempotency-key'];
  const join = read.ok
    ? joinOf(read.raw, {
        connectionId,
        target: target.endpoint,
        idempotencyKey: idempotencyKey?.toString(),
        range: request.headers['content-range'],
        openMs: openFor(asked.waitMs),
      })
    : undefined;
  const ended = await call(context, response, lease, { ...asked, who }, read, join);
  if (ended === 'answered') return undefined;
  return ended.kind === 'waited'
    ? await orThrowHeldUnread(ended.approvalId, () => answerHeld({ ...context, who }, response, asked, ended))
    : outcomeRefusal(context, ended);
}

/** Makes the call. `answered`: the platform's answer was sent. */
async function call(
  context: RawContext & { left: AbortSignal },
  response: ServerResponse,
  lease: CallLease,
  asked: FoundConnection & Asking,
  read: ReadRequest,
  join: RawRequest['join'],
): Promise<StreamOutcome | Waited | 'answered'> {
  const { services, limits, request, correlationId, left } = context;
  const { who, target, place, platform, connectionId, waitMs } = asked;
  const { headers, headersDistinct } = request;
  const rewrite = rewriteOf(asked, request.method);
  const writer = new AnswerWriter({
    response,
    lease,
    looksThrough: true,
    rewrite,
    holdsBack: ({ headers: { 'content-type': type, 'content-length': length } }) => {
      if (rewrite) return { mostMs: Number.POSITIVE_INFINITY };
      if (STREAMED_TYPES.test(String(type ?? '')) || Number(length) > HELD_BACK_BYTES) return false;
      return { mostMs: length === undefined ? HELD_BACK_MS : Number.POSITIVE_INFINITY };
    },
    head: ({ status, headers: answered, auditId, followed, maskedBy }) => {
      const notes = notesOf({ unsent: unsentOf(asked, request), followed, maskedBy });
      return { status, headers: { ...answeredHeaders(answered, place), 'X-Svc-Audit-Id': auditId, ...notes } };
    },
  });
  const wrong = read.ok ? headerProblem(headers) : read.detail;
  const raw = read.ok && wrong === undefined ? { ...read.raw, join } : undefined;
  const given: StreamCallRequest = {
    asked: raw
      ? {
          ok: true,
          action: rawAction(raw, {
            ...read.sent,
            platform,
            endpoint: target.endpoint,
            connectionId,
            reason: reasonOf(headers),
          }),
        }
      : {
          ok: false,
          body: { platform, method: request.method },
          code: read.ok ? 'invalid_request' : read.code,
          detail: wrong ?? '',
        },
    correlationId,
    traceparent: traceparentOf(headers),
    sessionMarker: headers['x-svc-session'],
    caller: headers['x-svc-caller'] === undefined ? undefined : headersDistinct['x-svc-caller'],
    lease,
    left,
    raw,
    taker: (part) => writer.take(part),
    wait: waitWithin(limits, who, waitMs, raw?.body && 'bytes' in raw.body ? raw.body.bytes.length : 0),
  };
  let outcome: StreamOutcome | undefined;
  const done = await perform(services, who, given, (ended) => {
    outcome = ended;
    return { status: 0, body: '' };
  });
  if (done.kind === 'waited') return done;
  if (done.kind === 'joins_raced')
    throw new Refusal('conflict', 'The same request was held and decided several times at this moment. Send it again.');
  if (outcome === undefined) throw new Error('a raw request has no Idempotency-Key of the broker’s');
  if (writer.finish(outcome)) return 'answered';
  if (outcome.kind !== 'answered') return outcome;
  writeBufferedAnswer(response, outcome, place, unsentOf(asked, request));
  return 'answered';
}

/** Answers a held call. Undefined when the platform's answer was sent. */
async function answerHeld(
  context: RawContext,
  response: ServerResponse,
  asked: FoundConnection,
  { end, ...held }: Waited,
): Promise<RawRefusal | undefined> {
  const who = await currentPrincipal(context, asked.platform);
  if (end.kind !== 'made') return await heldRefusal(context, { ...held, end });
  const ended = await accessEndedRefusal({ ...context, who }, asked, { ...held, end });
  if (ended) return ended;
  const rewrite = rewriteOf(asked, context.request.method);
  const unsent = unsentOf(asked, context.request);
  if (await writeMade(context, response, { ...held, end }, { place: asked.place, rewrite, unsent })) return undefined;
  return await heldRefusal(context, { ...held, end: { kind: 'not_kept', auditId: end.auditId } });
}

const askedFor = ({ request }: RawContext, asked: FoundConnection | undefined): AskedFor | undefined =>
  asked
    ? { platform: asked.loaded.platform, method: request.method ?? '', endpoint: asked.target.endpoint }
    : askedByLabel(request);

/** Returns names of the client's headers that are not sent. */
const unsentOf = ({ loaded, token }: FoundConnection, { headers }: RawContext['request']): string[] =>
  unsentHeaders(headers, namedByManifest(loaded.platform?.manifest ?? {}), token.header);

/** Returns the function that rewrites the platform's answer; undefined when nothing is changed. */
const rewriteOf = ({ loaded, target, place }: FoundConnection, method = ''): ((whole: Buffer) => Buffer) | undefined =>
  loaded.platform && answerRewrite(loaded.platform.rules, { method, endpoint: target.endpoint }, place);

/** An answer that has begun is cut off, so that it is not taken for complete. */
function fail(context: RawContext, response: ServerResponse, error: unknown, asked: FoundConnection | undefined): void {
  const { correlationId, who } = context;
  if (response.headersSent || response.destroyed) return void endIncomplete(response);
  const refused = error instanceof HeldUnread ? unreadRefusal(context, error) : rawRefusal(context, error);
  const reply = refused
    ? refusedReply(refused, context, askedFor(context, asked))
    : refusalReply(error, { path: '/proxy', dialect: 'problem' }, context, who);
  answerWhileSent(context.request, response);
  send(response, reply, correlationId);
}

/** Converts an error into a refusal; undefined for an unexpected error. */
function rawRefusal(context: RawContext, error: unknown): RawRefusal | undefined {
  const isRead = ['GET', 'HEAD'].includes(context.request.method ?? '');
  // The write may have been made, so clients must not retry it. Not for MaybeRecorded (the call may be held): there the same request joins the held
  // call.
  if (!isRead && error instanceof AuditUnavailable && error.sent && !(error instanceof MaybeRecorded))
    return { ...thrownRefusal(refusalOf(error, { path: '/proxy' }, context)), status: UNREPEATED, retry: false };
  const refused = asRefusal(error);
  return refused && thrownRefusal(refused);
}
