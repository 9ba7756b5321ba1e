/**
 * Connects the tools of `/mcp` to the broker within this process: the use cases of the agent's routes, with the same validation, limits, audit and
 * answers as over the network.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { CallOutcome } from '../../../mcp/client/action.ts';
import { readApproval } from '../../../mcp/client/approval.ts';
import { parseExactJson } from '../../../mcp/client/exact-json.ts';
import {
  type KnownPermissions,
  outcomeOf,
  readAccessRequest,
  readAccessStatus,
  readAnswer,
  readConsentStatus,
  readPermissions,
  readStartedConsent,
} from '../../../mcp/client/read-answers.ts';
import { answeredOutcome } from '../../../mcp/client/read-outcome.ts';
import type { BrokerReply } from '../../../mcp/client/send.ts';
import type { ToolClient } from '../../../mcp/tools/tool-client.ts';
import type { OutcomeOf, WholeOutcome } from '../../audit/outcome.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { checkAction } from '../../calls/perform.ts';
import { traceparentOf } from '../authenticate.ts';
import { consentStatusReply, settledConsent } from '../consent-wait.ts';
import { currentPrincipal } from '../current-principal.ts';
import { answeredNotes, outcomeReply } from '../outcome-reply.ts';
import type { Reply } from '../reply.ts';
import { MAX_BODY_BYTES, platformOf } from '../request-body.ts';
import type { Context, Route } from '../route.ts';
import { agentKey, logRefused, nameable, refusalReply, takeLimit, validate } from '../route-steps.ts';
import { accessRequest, accessRequestStatus } from '../routes/access-requests.ts';
import { actions, performCall } from '../routes/actions.ts';
import { agentPermissions } from '../routes/agent-permissions.ts';
import { approval } from '../routes/approvals.ts';
import { callerConsentStart, callerConsentStatus } from '../routes/caller-consent.ts';

type Outer = Context<'mcp_client', undefined>;
type Inner = Context<'agent', undefined>;

/** Parameters of one use of a route, in addition to those of the client's request. */
type Use = {
  platform?: string;
  params?: Record<string, string>;
  query?: unknown;
  headers?: IncomingHttpHeaders;
  signal?: AbortSignal | undefined;
  /** The answer is awaited even after an abort, because the call may have had an effect. */
  hasEffect?: boolean;
};

/** The network's size limit applies here too: a message may be longer, because its JSON can contain escapes. */
const isTooLarge = (body: unknown): boolean => Buffer.byteLength(JSON.stringify(body)) > MAX_BODY_BYTES;
const TOO_LARGE = { ok: false, code: 'payload_too_large', error: 'The body is too large: 1 MiB at most.' } as const;

/**
 * Returns the broker for one request of a client, until `gone` aborts because the client has disconnected. Facts and consent are read again for each
 * use, so that changes by an owner while a tool waits take effect at the next use.
 */
export function brokerPort(outer: Outer, gone: AbortSignal): ToolClient {
  let permitted: KnownPermissions | undefined;

  /** Runs the steps of a route, and then `answer`. Throws the reason of an aborted signal. */
  const use = async <Answer extends Reply>(
    route: Route,
    how: Use,
    answer: (context: Inner) => Promise<Answer>,
  ): Promise<Answer | Reply> => {
    const signal = how.signal ? AbortSignal.any([how.signal, gone]) : gone;
    signal.throwIfAborted();
    const reply = answerWithin(outer, route, how, { left: signal, gone }, answer);
    return how.hasEffect ? await reply : await unlessAborted(reply, signal);
  };
  const handle = async (route: Route, how: Use): Promise<BrokerReply> =>
    brokerReply(await use(route, how, (context) => route.handle(context as never)));

  const post = async (route: Route, asked: object, signal: AbortSignal | undefined): Promise<BrokerReply> => {
    const platform = platformOf(asked, route);
    const parsed = isTooLarge(asked) ? TOO_LARGE : { ok: true as const, value: asked, platform, bytes: 0 };
    const reply = await use(route, { platform, signal, hasEffect: true }, async (context) => {
      const refused = await validate(route, parsed, context as Context);
      return refused ?? (await route.handle(context as never));
    });
    return brokerReply(reply);
  };

  return {
    call: async (action, { idempotencyKey, signal, traceparent } = {}) => {
      const how = { platform: platformOf(action, actions), signal, hasEffect: true };
      const reply: Reply & { outcome?: WholeOutcome } = await use(actions, how, (context) =>
        performCall(
          context,
          {
            asked: isTooLarge(action)
              ? { ok: false, body: undefined, code: TOO_LARGE.code, detail: TOO_LARGE.error }
              : checkAction(action),
            correlationId: context.correlationId,
            idempotencyKey,
            traceparent: traceparent ?? traceparentOf(outer.headers),
            sessionMarker: outer.headers['x-svc-session'],
          },
          // The reply is what is stored for the Idempotency-Key.
          (context, outcome) => ({ ...outcomeReply(context, outcome), outcome }),
        ),
      );
      const { outcome } = reply;
      return outcome?.kind === 'answered' ? toolOutcome(outcome) : outcomeOf(action, brokerReply(reply));
    },
    approval: async (id, { waitSeconds = 0, signal } = {}) =>
      readAnswer(await handle(approval, { params: { id }, query: waiting(waitSeconds), signal }), readApproval),
    consent: async (token, { waitSeconds = 0, signal } = {}) => {
      const reply = await use(callerConsentStatus, { signal }, async (context) =>
        consentStatusReply(context, await settledConsent(context, token, waiting(waitSeconds).wait)),
      );
      return readAnswer(brokerReply(reply), readConsentStatus);
    },
    permissions: async (signal) => {
      const before = permitted;
      const headers = before && { 'if-none-match': before.etag };
      const reply = await handle(agentPermissions, { ...(headers && { headers }), signal });
      return readAnswer(reply, (body) => {
        const read = readPermissions(before, body, reply);
        permitted = read?.known ?? before;
        return read && { permissions: read.known.permissions, changed: read.changed };
      });
    },
    requestAccess: async (asked, signal) => readAnswer(await post(accessRequest, asked, signal), readAccessRequest),
    startConsent: async (asked, signal) =>
      readAnswer(await post(callerConsentStart, asked, signal), readStartedConsent),
    accessRequest: async (token, { waitSeconds = 0, signal } = {}) => {
      const how = { params: { token }, query: waiting(waitSeconds), signal };
      return readAnswer(await handle(accessRequestStatus, how), readAccessStatus);
    },
  };
}

/** Converts seconds like the parameter `?wait=`: to milliseconds, 50 s at most. */
const waiting = (seconds: number) => ({ wait: Math.min(Math.ceil(Math.max(0, seconds)), 50) * 1000 });

type Within = { left: AbortSignal; gone: AbortSignal };

async function answerWithin<Answer extends Reply>(
  outer: Outer,
  route: Route,
  { platform = '', params = {}, query, headers = {} }: Use,
  { left, gone }: Within,
  answer: (context: Inner) => Promise<Answer>,
): Promise<Answer | Reply> {
  const { limits } = outer;
  let who: AgentPrincipal | undefined;
  let reply: Answer | Reply;
  try {
    who = await currentPrincipal(outer, route.facts ?? platform);
    if (route.limit) await takeLimit(limits, route.limit, agentKey(route.limit, who.agent));
    const asked = { params: nameable(params), query: (query ?? new URLSearchParams()) as URLSearchParams, headers };
    reply = await answer({ ...outer, ...asked, who, left });
  } catch (error) {
    reply = refusalReply(error, route, outer, who);
  }
  if (reply.status === 429) logRefused(limits, route, reply, who, outer.source);
  // The client's answer is built from this reply, so the lease ends with the client's request.
  const { lease } = reply;
  if (gone.aborted) lease?.release();
  else if (lease) gone.addEventListener('abort', () => lease.release(), { once: true });
  return reply;
}

/** Converts a reply into the form that a client receives over the network. */
export function brokerReply(reply: Reply): BrokerReply {
  const own = new Map(Object.entries(reply.headers ?? {}).map(([name, value]) => [name.toLowerCase(), `${value}`]));
  return {
    status: reply.status,
    headers: { get: (name) => own.get(name.toLowerCase()) ?? null },
    text: String(reply.body ?? ''),
  };
}

async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    answer.catch(() => {});
  }
}

/**
 * Limit, in code units, up to which a list or an object is parsed. Of a longer answer the tool returns the beginning as text (mcp/tools/answer.ts),
 * and parsing it would block all other agents. Twice what a tool returns: without its whitespace, a shorter one may fit as a whole.
 */
const MAX_PARSED = 512 * 1024;
/** Up to this many separators an answer of any length is parsed: it consists of few long strings, such as pictures, which cost no more than copying. */
const MAX_VALUES = 10_000;

/** Converts a platform's answer into the form that a client reads from a reply; `data` is text when the answer is too long for a tool's result. */
function toolOutcome(outcome: OutcomeOf<'answered'>): CallOutcome {
  const text = outcome.dataJson.toString();
  const isParsed = text.length <= MAX_PARSED || text.startsWith('"') || hasFewValues(text);
  return answeredOutcome(isParsed ? parseExactJson(text) : text, answeredNotes(outcome));
}

/** Separators within strings count, too: a text that is longer than a result is truncated in either form. */
function hasFewValues(text: string): boolean {
  const separator = /[[{,]/g;
  for (let count = 0; count <= MAX_VALUES; count++) if (!separator.test(text)) return true;
  return false;
}
