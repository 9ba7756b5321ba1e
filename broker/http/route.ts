/** Each endpoint of ours is one declaration: validation, authentication, limits, errors and the OpenAPI document follow from it. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { Principal } from '../auth/principal.ts';
import type { CallLease } from '../egress/call-lease.ts';
import type { GIT_PLATFORM } from '../git/git-call.ts';
import type { ALL_PLATFORMS, JsonObject } from '../policy/facts.ts';
import type { Services } from '../services.ts';
import type { ErrorCode } from './errors.ts';
import type { AnswerHeader } from './openapi/headers.ts';
import type { ConcurrencyLimits, Limit, RateLimits } from './rate-limits.ts';
import type { Reply } from './reply.ts';

/**
 * `local`: the command line of the operator. `anyone`: also unauthenticated clients; a bearer, if sent, has to be a valid agent's or owner's.
 * `mcp_client`: an agent with an access token for `/mcp`, or with its own token. `git`: an agent whose token is the Basic password. `raw`: an agent
 * whose token is sent where a client of the platform sends its key.
 */
export type Auth =
  | 'none'
  | 'agent'
  | 'mcp_client'
  | 'owner'
  | 'agent_or_owner'
  | 'anyone'
  | 'owner_or_local'
  | 'owner_or_pipeline'
  | 'local'
  | 'git'
  | 'raw';
/** Kinds for owners only, some of them also for the operator or pipelines. */
export const OWNERS: ReadonlySet<Auth> = new Set<Auth>(['owner', 'owner_or_local', 'owner_or_pipeline']);

type PrincipalOf<A extends Auth> = A extends 'none'
  ? undefined
  : A extends 'agent' | 'mcp_client' | 'git' | 'raw'
    ? Extract<Principal, { kind: 'agent' }>
    : A extends 'owner'
      ? Extract<Principal, { kind: 'owner' }>
      : A extends 'local'
        ? Extract<Principal, { kind: 'local' }>
        : A extends 'owner_or_pipeline'
          ? Extract<Principal, { kind: 'owner' | 'pipeline' }>
          : A extends 'owner_or_local'
            ? Extract<Principal, { kind: 'owner' | 'local' }>
            : Extract<Principal, { kind: 'agent' | 'owner' }> | (A extends 'anyone' ? undefined : never);

/** The parameter names in a path: for `/a/{id}/b/{name}`, `id` and `name`. */
type ParamOf<Path extends string> = string extends Path
  ? string
  : Path extends `${string}{${infer Name}}${infer Rest}`
    ? Name | ParamOf<Rest>
    : never;

export type Context<A extends Auth = Auth, Body = unknown, Query = URLSearchParams, Param extends string = string> = {
  services: Services;
  who: PrincipalOf<A>;
  body: Body;
  params: Record<Param, string>;
  /** The parameters as parsed by the declaration's `query`; without it, the raw parameters. */
  query: Query;
  request: IncomingMessage;
  headers: IncomingHttpHeaders;
  correlationId: string;
  /** The rate limits of this process, for a route that calls another one. */
  limits: RateLimits;
  /** The client's address as strikes and limits use it. */
  source: string;
  /** Holds the memory of the parsed body, for a call to take over; undefined when the body is short. */
  lease?: CallLease | undefined;
  /**
   * Authenticates the request again, for answers that take longer: false when it is refused. Rejects when it cannot be checked now (the store or an
   * identity provider does not answer), which must not count as permission.
   */
  stillMay: () => Promise<boolean>;
  /** Set for calls of a tool of `/mcp` (mcp/port.ts): aborted when nothing waits for this answer any more, though the connection is still open. */
  left?: AbortSignal;
};

/**
 * Describes an answer: in words, and by a schema where there is one, which the OpenAPI document shows and a test checks against real answers. `type`:
 * the media type; default JSON. `also`: alternatives that a client can request by Accept, by media type. `headers`: those that are not on every
 * answer. `example`: of the body. `empty`: there is no body.
 */
export type AnswerDeclaration =
  | string
  | {
      description: string;
      schema?: z.ZodType;
      type?: string;
      also?: Readonly<Record<string, z.ZodType>>;
      headers?: readonly AnswerHeader[];
      example?: unknown;
      empty?: true;
    };

/** A header that a request may have. */
export type RequestHeader = { description: string; example?: string };

/** Why a body was refused: in one sentence, and all issues if it was JSON. */
export type MalformedBody = {
  body: unknown;
  code: 'invalid_request' | 'payload_too_large' | 'too_many_calls';
  detail: string;
  issues?: readonly z.core.$ZodIssue[];
};

type Declared<Query extends z.ZodObject | undefined> = Query extends z.ZodObject ? z.output<Query> : URLSearchParams;

export type Route<
  A extends Auth = Auth,
  Schema extends z.ZodType = z.ZodType,
  Query extends z.ZodObject | undefined = z.ZodObject | undefined,
  Path extends string = string,
> = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for a parameter, as in the specification and OpenAPI. */
  path: Path;
  /**
   * The last parameter of the path matches all that follows, slashes included, or nothing. `as_sent`: the handler reads the path of the request
   * itself, so that no path is refused by the router, which decodes.
   */
  takesRest?: true | 'as_sent';
  auth: A;
  /** A public document: pages of any site may read it (AZ-12). */
  anyOrigin?: true;
  /** For owners' routes: the lowest role that may use it. */
  role?: 'viewer' | 'approver' | 'admin';
  limit?: Limit;
  /** For `anyone`: the limit for requests without a bearer, by address, in place of the other. */
  strangers?: Limit;
  /** Limits of concurrent answers. */
  concurrency?: ConcurrencyLimits;
  /** For a path with a token and no principal: returns the organisation in whose share these answers count. Throws what `handle` would throw. */
  organisationOf?: (services: Services, token: string) => Promise<string | undefined>;
  /** The platforms whose facts are loaded with the authentication of an agent; default: the one that the body names, if any. */
  facts?: typeof ALL_PLATFORMS | typeof GIT_PLATFORM;
  /** Returns that platform from the request, where its address names it. */
  factsOf?: (request: IncomingMessage) => string;
  /** Formats a refusal that came before the handler, so that the client shows it. `who`: the principal, if known. Never throws. */
  formatRefusal?: (
    request: IncomingMessage,
    reply: Reply,
    by: { services: Services; who: Principal | undefined; correlationId: string },
  ) => Reply | Promise<Reply>;
  /** Of a GET: reading has an effect, so the handler refuses HEAD. */
  refusesHead?: true;
  /** The handler also receives requests with other methods, and refuses them itself. */
  anyMethod?: true;
  /** A halted agent's long body is not read: the refusal is recorded like that of a body that could not be parsed. */
  isUnreadWhenStopped?: true;
  /** Returns the name of the platform whose facts are loaded, if it is not the member `platform`. */
  platformIn?: (body: JsonObject) => unknown;
  /**
   * `problem`: errors are RFC 7807, and `X-Request-ID` is returned (specification, Error shapes). `line`: one line of text, which git shows (Errors
   * 1). Default: the envelope.
   */
  dialect?: 'problem' | 'line';
  /** `_meta.capability`. */
  capability: string;
  summary: string;
  /** More than the summary, for the document: a paragraph, in Markdown. */
  description?: string;
  /** Request headers that this route uses, beside those of every route. */
  headers?: Readonly<Record<string, RequestHeader>>;
  /** Example of a body, for the document. */
  example?: unknown;
  /** Path parameters, for the document only: the handler itself answers invalid ones with 404. */
  params?: Readonly<Record<string, z.ZodType<string>>>;
  /** Query parameters. Undeclared names are ignored, except on owners' routes. */
  query?: Query;
  body?: Schema;
  /** Media type of a body that the handler reads itself, for the document. */
  rawBody?: string;
  /** Whether a missing body counts as `{}`. */
  bodyOptional?: boolean;
  /** The body holds a secret: errors do not quote its text. */
  secretBody?: true;
  /** Members of the body whose strings may hold U+0000. */
  nulAllowedIn?: readonly string[];
  /** Size limit of the body in bytes; default 1 MiB. */
  maxBodyBytes?: number;
  /** Requests with a long body wait for each other, from reading the body to the answer: one of an organisation at a time. */
  inTurn?: true;
  answers: Record<number, AnswerDeclaration>;
  errors: readonly ErrorCode[];
  /** Answers an authenticated caller whose body is refused, where more than a 400 is needed. `body`: as far as it was parsed. */
  onMalformed?: (context: Context<A, undefined, Declared<Query>>, problem: MalformedBody) => Promise<Reply>;
  /** Whether a body that is too large, or for which there is no memory, goes to `onMalformed` as well, which answers 413 or 429 unless another refusal comes first. */
  tooLargeIsMalformed?: true;
  handle: (context: Context<A, z.output<Schema>, Declared<Query>, ParamOf<Path>>) => Promise<Reply>;
};

/** A declared route, with the types of its body and answers for callers. */
export type DeclaredRoute<Schema extends z.ZodType, Answers extends Route['answers']> = Route & {
  body?: Schema;
  answers: Answers;
};

/** Declares a route; the types of principal, body and query follow from the declaration. */
export function route<
  A extends Auth,
  Schema extends z.ZodType = z.ZodType<undefined>,
  Query extends z.ZodObject | undefined = undefined,
  const Answers extends Route['answers'] = Route['answers'],
  const Path extends string = string,
>(declaration: Route<A, Schema, Query, Path> & { answers: Answers }): DeclaredRoute<Schema, Answers> {
  return declaration as unknown as DeclaredRoute<Schema, Answers>;
}
