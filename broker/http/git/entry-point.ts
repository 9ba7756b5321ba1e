/** Serves `/git`: a request of git as a governed call, whose answer is streamed (specification, Governed git). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GitOutcome } from '../../audit/outcome.ts';
import { readBasic } from '../../auth/basic.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { holderOf } from '../../calls/call.ts';
import { type GitCallRequest, perform } from '../../calls/perform.ts';
import type { StreamConsumer } from '../../calls/streamed.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import {
  endpointOf,
  GIT_PLATFORM,
  type GitTarget,
  gitCall,
  mediaTypeOf,
  nameOf,
  readTarget,
  scopeOf,
} from '../../git/git-call.ts';
import { type BodyRefusal, commandsOf, lengthRefusal, type ReadBody, readBody } from '../../git/read-request.ts';
import { traceparentOf } from '../authenticate.ts';
import { currentPrincipal } from '../current-principal.ts';
import { disconnectSignal, endIncomplete, linger } from '../disconnects.ts';
import { GIT_HEADERS } from '../line.ts';
import { callerOf } from '../next-step.ts';
import { send } from '../reply.ts';
import { inTime } from '../request-pieces.ts';
import type { Context } from '../route.ts';
import { refusalReply } from '../route-steps.ts';
import { AnswerWriter } from '../stream-answer.ts';
import { gitOutcomeReply } from './outcome.ts';
import { formatGitRefusal } from './refusal.ts';

type GitContext = Context<'git'>;

/** Longer than for other requests, because git sends all of a push before it reads the report. */
const REPORT_LINGER_MS = 60_000;

/** An id that no connection has. */
const NO_CONNECTION = '00000000-0000-0000-0000-000000000000';

/** Serves a request whose path was checked already. Never rejects. */
export async function serveGit(context: GitContext, response: ServerResponse): Promise<void> {
  const { request, services, correlationId } = context;
  const lease = services.budget.lease(holderOf(context.who));
  const left = disconnectSignal(response);
  let body: ReadBody | undefined;
  const target = readTarget(request.method ?? '', request.url ?? '');
  try {
    if (typeof target === 'string') throw new Error('a path of /git that was not checked');
    body = target.isAdvertisement ? undefined : await takeBody(context, target, response, lease);
    const who = body?.ok ? await currentPrincipal(context, GIT_PLATFORM) : context.who;
    const asked = body?.ok === false ? refusedCall(target, body) : askedCall({ request, who }, target, body);
    const isShort = target.isAdvertisement || (body?.ok === true && body.step === 'probe');
    const writer = new AnswerWriter({
      response,
      lease,
      holdsBack: () => isShort && { mostMs: Number.POSITIVE_INFINITY },
      // Refs and reports of git contain no text of the platform, so they are not searched for credentials.
      looksThrough: false,
      head: ({ auditId }) => ({ status: 200, headers: headersOf(target, auditId) }),
    });
    const taker: StreamConsumer = (part) => writer.take(part);
    const call: GitCallRequest = { ...asked, ...sentBy(context), lease, taker, left };
    let outcome: GitOutcome | undefined;
    await perform(services, who, call, (ended) => {
      outcome = ended;
      return { status: 0, body: '' };
    });
    if (outcome === undefined) throw new Error('a git request has no Idempotency-Key');
    if (!writer.finish(outcome))
      send(
        response,
        formatGitRefusal(context.request, target, body, gitOutcomeReply(outcome, nameOf(target), callerOf(context))),
        correlationId,
      );
  } catch (error) {
    fail(context, response, error, typeof target === 'string' ? undefined : target, body);
  } finally {
    lease.release();
    if (body?.ok)
      await body.release().catch((error) => services.broker.log.error({ err: error }, 'a kept body was not released'));
    linger(request, body?.push ? REPORT_LINGER_MS : undefined);
  }
}

const headersOf = (target: GitTarget, auditId: string) => ({
  ...GIT_HEADERS,
  'Content-Type': mediaTypeOf(target.service, target.isAdvertisement ? 'advertisement' : 'result'),
  'X-Svc-Audit-Id': auditId,
});

/** An answer that has begun is cut off, so that it is not taken for complete. */
function fail(
  context: GitContext,
  response: ServerResponse,
  error: unknown,
  target: GitTarget | undefined,
  body: ReadBody | undefined,
): void {
  const { services, correlationId, who } = context;
  if (response.headersSent || response.destroyed) {
    endIncomplete(response);
    return;
  }
  const reply = refusalReply(error, { path: '/git', dialect: 'line' }, { services, correlationId }, who);
  send(response, formatGitRefusal(context.request, target, body, reply), correlationId);
}

async function takeBody(
  { request, services, who }: GitContext,
  { service }: GitTarget,
  response: ServerResponse,
  lease: CallLease,
): Promise<ReadBody> {
  const { gitMaxRequestBytes: limit } = services.broker.config;
  const { headers } = request;
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  const tooLong = lengthRefusal(length, limit);
  const coding = headers['content-encoding'] ?? 'identity';
  if (tooLong) {
    // A client that sends `Expect: 100-continue` is refused without reading its body.
    const mayTell = service === 'git-receive-pack' && headers.expect === undefined && coding === 'identity';
    const push = mayTell && lease.begin() ? await commandsOf(inTime(request)).catch(() => undefined) : undefined;
    return { ...tooLong, ...(push && { push }) };
  }
  const isGzip = /^(?:x-)?gzip$/i.test(coding);
  if (!isGzip && coding.toLowerCase() !== 'identity')
    return invalid('The body has a Content-Encoding other than gzip.');
  const type = mediaTypeOf(service, 'request');
  if (headers['content-type']?.toLowerCase() !== type) return invalid(`The Content-Type of the body is not ${type}.`);
  // The slot among concurrent calls is taken before the body is read: slow senders could otherwise hold any number of connections.
  const mayTell = service === 'git-receive-pack' && headers.expect === undefined && !isGzip;
  if (!lease.begin()) {
    const push = mayTell ? await commandsOf(inTime(request, BUSY_MS)).catch(() => undefined) : undefined;
    return { ...BUSY, ...(push && { push }) };
  }
  if (headers.expect !== undefined) response.writeContinue();
  try {
    return await readBody(
      {
        sender: holderOf(who),
        service,
        pieces: inTime(request),
        length,
        isGzip,
      },
      services.gitBodies,
      limit,
    );
  } catch (error) {
    if (!request.destroyed) throw error;
    return CUT;
  }
}

const CUT: BodyRefusal = {
  ok: false,
  code: 'request_cut',
  detail:
    'The request broke off before it was complete: the client disconnected, or stalled for a minute. Nothing was forwarded.',
};

/** Time limit for reading the refs of a push that found no free slot. */
const BUSY_MS = 1_000;

const BUSY: BodyRefusal = {
  ok: false,
  code: 'too_many_calls',
  detail: 'Too many calls of this agent and its children, or of all agents, are under way. Try again.',
};

const invalid = (detail: string): BodyRefusal => ({ ok: false, code: 'invalid_request', detail });

/** A request that never becomes a call is recorded with what is known of it. */
function refusedCall(target: GitTarget, { code, detail }: BodyRefusal) {
  const body = { platform: GIT_PLATFORM, scope: scopeOf(target.service), method: 'POST' };
  return { asked: { ok: false as const, body, path: endpointOf(target), code, detail } };
}

function askedCall(
  { request, who }: Pick<GitContext, 'request' | 'who'>,
  target: GitTarget,
  body: Extract<ReadBody, { ok: true }> | undefined,
): ReturnType<typeof gitCall> {
  const { headers } = request;
  const gitProtocol = headers['git-protocol'];
  const said = {
    gitProtocol: typeof gitProtocol === 'string' ? gitProtocol : undefined,
    userAgent: headers['user-agent'],
  };
  return gitCall(target, body ?? { step: 'advertised', refs: [] }, said, connectionOf(request, who));
}

/** The user name `connection.<label>` selects the connection; any other user name is ignored. */
function connectionOf(request: IncomingMessage, { rows }: AgentPrincipal): string | undefined {
  const read = readBasic(request);
  const [, label] = (read.kind === 'basic' && /^connection\.(.+)$/s.exec(read.user)) || [];
  if (label === undefined) return undefined;
  return rows.find((row) => row.grant_id !== null && row.connection_label === label)?.connection_id ?? NO_CONNECTION;
}

const sentBy = ({ correlationId, request: { headers, headersDistinct } }: GitContext) => ({
  correlationId,
  traceparent: traceparentOf(headers),
  sessionMarker: headers['x-svc-session'],
  caller: headers['x-svc-caller'] === undefined ? undefined : headersDistinct['x-svc-caller'],
});
