/** An endpoint of ours is one declaration: validation, authentication, limits, errors and, later, OpenAPI come from it. */
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { Governor } from '../calls/governor.ts';
import type { Principal } from '../identity/principal.ts';
import type { ALL_PLATFORMS } from '../store/facts.ts';
import type { ErrorCode } from './errors.ts';
import type { Limit } from './rate-limits.ts';
import type { Reply } from './reply.ts';

export type Auth = 'none' | 'agent' | 'owner' | 'agent_or_owner' | 'local';
type PrincipalOf<A extends Auth> = A extends 'none'
  ? undefined
  : A extends 'agent'
    ? Extract<Principal, { kind: 'agent' }>
    : A extends 'owner'
      ? Extract<Principal, { kind: 'owner' }>
      : A extends 'local'
        ? Extract<Principal, { kind: 'local' }>
        : Extract<Principal, { kind: 'agent' | 'owner' }>;

export type Context<A extends Auth = Auth, Body = unknown> = {
  governor: Governor;
  who: PrincipalOf<A>;
  body: Body;
  params: Record<string, string>;
  query: URLSearchParams;
  request: IncomingMessage;
  correlationId: string;
  /** The client's address as strikes and limits know it. */
  source: string;
};

export type Route<A extends Auth = Auth, Schema extends z.ZodType = z.ZodType> = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With `{name}` for a parameter, as the specification and OpenAPI write it. */
  path: string;
  auth: A;
  /** Owner routes: the least role that may. */
  role?: 'viewer' | 'approver' | 'admin';
  limit?: Limit;
  /** Which platforms' facts come with the authentication of an agent, when the body names none. */
  facts?: typeof ALL_PLATFORMS;
  /** `_meta.capability`. */
  capability: string;
  summary: string;
  body?: Schema;
  /** Whether no body at all stands for `{}`. */
  bodyOptional?: boolean;
  /** Members of the body whose strings may hold U+0000. */
  nulAllowedIn?: readonly string[];
  /** Largest body in bytes; 1 MiB unless said otherwise. */
  maxBodyBytes?: number;
  answers: Record<number, string>;
  errors: readonly ErrorCode[];
  /** Answers an authenticated caller whose body is refused, where more than a 400 comes of it. `body`: as far as it parsed. */
  onMalformed?: (context: Context<A, undefined>, problem: { body: unknown; detail: string }) => Promise<Reply>;
  handle: (context: Context<A, z.output<Schema>>) => Promise<Reply>;
};

/** Declares a route; the types of principal and body follow from the declaration. */
export function route<A extends Auth, Schema extends z.ZodType = z.ZodType<undefined>>(
  declaration: Route<A, Schema>,
): Route {
  return declaration as unknown as Route;
}
