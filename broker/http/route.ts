/** An endpoint of ours is one declaration: validation, authentication, limits, errors and the OpenAPI document come from it. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { Principal } from '../auth/principal.ts';
import type { GIT_PLATFORM } from '../git/git-call.ts';
import type { ALL_PLATFORMS, JsonObject } from '../policy/facts.ts';
import type { Services } from '../services.ts';
import type { ErrorCode } from './errors.ts';
import type { AnswerHeader } from './openapi-headers.ts';
import type { AtOnce, Limit, RateLimits } from './rate-limits.ts';
import type { Reply } from './reply.ts';

/**
 * `local`: the command line of whoever runs the broker. `anyone`: strangers, too; whoever sends a bearer must be its agent or
 * owner. `mcp_client`: an agent with an access token for `/mcp`, or its own. `git`: an agent, whose token is the Basic password. `raw`: an agent,
 * whose token is where a client of the platform sends its key.
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
/** What owners alone may ask for, but for the operator or pipelines. */
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

/** The parameters that a path names: of `/a/{id}/b/{name}`, `id` and `name`. */
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
  /** What the declaration's `query` makes of the parameters; without one, the parameters as they came. */
  query: Query;
  request: IncomingMessage;
  headers: IncomingHttpHeaders;
  correlationId: string;
  /** What this process counts, for what a route asks of another one. */
  limits: RateLimits;
  /** The client's address as strikes and limits know it. */
  source: string;
  /**
   * Authenticates the request again, for answers that take longer: false where that is refused. Rejects where it cannot be known now (a
   * store or an identity provider that does not answer), which is not a yes.
   */
  stillMay: () => Promise<boolean>;
  /** Asked by a tool of `/mcp` (mcp-port.ts): aborted when nobody waits for this answer any more, though the connection is there. */
  left?: AbortSignal;
};

/**
 * What an answer holds: in words, and as a schema where there is one, which the OpenAPI document shows and a test holds real
 * answers to. `type`: the media type; JSON unless said otherwise. `also`: what a client may get instead that asks for it by
 * Accept, by media type. `headers`: those that are not on every answer. `example`: of the body.
 * `empty`: there is none.
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

/** A header that a request may bring. */
export type RequestHeader = { description: string; example?: string };

/** Why a body was refused: in one sentence, and every finding when it was JSON. */
export type MalformedBody = {
  body: unknown;
  code: 'invalid_request' | 'payload_too_large';
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
  /** With `{name}` for a parameter, as the specification and OpenAPI write it. */
  path: Path;
  /**
   * The last parameter of the path is all that follows, slashes included, or nothing. `as_sent`: the handler reads the path of the request
   * itself, so that none is turned away by the router, which decodes.
   */
  takesRest?: true | 'as_sent';
  auth: A;
  /** A public document: pages of any site may read it (AZ-12). */
  anyOrigin?: true;
  /** Routes that owners may use: the least role that may. */
  role?: 'viewer' | 'approver' | 'admin';
  limit?: Limit;
  /** Of `anyone`: the limit of those who send no bearer, by address, instead of the other. */
  strangers?: Limit;
  /** How many of its answers may be under way at once. */
  atOnce?: AtOnce;
  /** Which platforms' facts come with the authentication of an agent; absent: the one that the body names, if any. */
  facts?: typeof ALL_PLATFORMS | typeof GIT_PLATFORM;
  /** The same, where the address says it. */
  factsOf?: (request: IncomingMessage) => string;
  /** A refusal that came before the handler, as whoever asked can read it. `who`: where it was known. Never throws. */
  told?: (
    request: IncomingMessage,
    reply: Reply,
    by: { services: Services; who: Principal | undefined; correlationId: string },
  ) => Reply | Promise<Reply>;
  /** The handler is given requests with any other method, too, and refuses them in its own way. */
  anyMethod?: true;
  /** A long body of an agent that is halted is not read: the refusal is recorded as that of a body that could not be parsed. */
  isUnreadWhenStopped?: true;
  /** Where the body names the platform whose facts come along, if not in `platform`. */
  platformIn?: (body: JsonObject) => unknown;
  /**
   * `problem`: errors are RFC 7807, and `X-Request-ID` comes back (specification, Error shapes). `line`: one line of text, which git
   * shows (Errors 1). The envelope unless said otherwise.
   */
  dialect?: 'problem' | 'line';
  /** `_meta.capability`. */
  capability: string;
  summary: string;
  /** What the summary leaves out, for the document: a paragraph, in Markdown. */
  description?: string;
  /** Headers of requests that mean something here, beside those of every route. */
  headers?: Readonly<Record<string, RequestHeader>>;
  /** A body as it may be sent, for the document. */
  example?: unknown;
  /** The parameters of the path, for the document: to what is none of them the handler has its own answer, a 404. */
  params?: Readonly<Record<string, z.ZodType<string>>>;
  /** Parameters after `?`. Names that are not declared are left alone. */
  query?: Query;
  body?: Schema;
  /** Whether no body at all stands for `{}`. */
  bodyOptional?: boolean;
  /** The body holds a secret: nothing of its text is quoted when it cannot be read. */
  secretBody?: true;
  /** Members of the body whose strings may hold U+0000. */
  nulAllowedIn?: readonly string[];
  /** Largest body in bytes; 1 MiB unless said otherwise. */
  maxBodyBytes?: number;
  answers: Record<number, AnswerDeclaration>;
  errors: readonly ErrorCode[];
  /** Answers an authenticated caller whose body is refused, where more than a 400 comes of it. `body`: as far as it parsed. */
  onMalformed?: (context: Context<A, undefined, Declared<Query>>, problem: MalformedBody) => Promise<Reply>;
  /** Whether a body that is too large goes to `onMalformed` as well, which answers 413 unless another refusal comes first. */
  tooLargeIsMalformed?: true;
  handle: (context: Context<A, z.output<Schema>, Declared<Query>, ParamOf<Path>>) => Promise<Reply>;
};

/** A declared route, with the types of its body and answers for whoever asks it. */
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
