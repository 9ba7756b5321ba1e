/** Declaration of a sandbox route: input is validated before its handler runs. */
import { z } from 'zod';

/** Header names are lower case. `body` absent: no content. */
export type Reply = { status: number; body?: object; headers?: Readonly<Record<string, string>> };

export type RouteMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The request: path parameters as text, the query by name, the parsed JSON body (undefined when there is none). */
export type Arrived = { params: readonly string[]; query: Record<string, string>; body: unknown };

export type Route = {
  method: RouteMethod;
  /** Segments; one in braces is a parameter that matches any text. */
  path: string;
  takesBody: boolean;
  answer(arrived: Arrived): Reply;
};

type Declaration<Q, B> = {
  method: RouteMethod;
  path: string;
  /** Absent: no query is allowed. */
  query?: z.ZodType<Q>;
  /** Absent: no body is read. */
  body?: z.ZodType<B>;
  handle(asked: { params: readonly string[]; query: Q; body: B }): Reply;
};

const NO_QUERY = z.strictObject({});

/** Creates a route from its declaration. An invalid query or body is a 400 that names each field. */
export function route<Q = Record<string, never>, B = undefined>(declared: Declaration<Q, B>): Route {
  const { method, path, body: bodySchema, handle } = declared;
  const querySchema = declared.query ?? (NO_QUERY as unknown as z.ZodType<Q>);
  return {
    method,
    path,
    takesBody: bodySchema !== undefined,
    answer({ params, query, body }) {
      const asked = querySchema.safeParse(query);
      if (!asked.success) return invalid('query', asked.error);
      if (bodySchema === undefined) return handle({ params, query: asked.data, body: undefined as B });
      const given = bodySchema.safeParse(body);
      if (!given.success) return invalid('body', given.error);
      return handle({ params, query: asked.data, body: given.data });
    },
  };
}

/** An error response: a stable code, and a sentence that says what to do. */
export function problem(status: number, error: string, message: string, headers?: Reply['headers']): Reply {
  return headers ? { status, body: { error, message }, headers } : { status, body: { error, message } };
}

/** 404 for a resource that does not exist. `what` is a name such as `issue 7`. */
export function notFound(what: string): Reply {
  return problem(404, 'not_found', `There is no ${what} in the sandbox.`);
}

/** 507 (RFC 4918 section 11.5): a collection reached its limit. `what` is the collection's name. */
export function full(what: string, most: number): Reply {
  return problem(507, 'sandbox_full', `The sandbox holds at most ${most} ${what}. Restart it to begin afresh.`);
}

function invalid(part: 'query' | 'body', error: z.ZodError): Reply {
  const fields = error.issues.slice(0, 20).map((issue) => ({ field: fieldOf(issue), problem: issue.message }));
  const told = fields.map(({ field, problem: text }) => (field === '' ? text : `${field}: ${text}`)).join('; ');
  return { status: 400, body: { error: `invalid_${part}`, message: `The ${part} is not valid. ${told}`, fields } };
}

function fieldOf(issue: z.core.$ZodIssue): string {
  const extra = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 5).join(', ') : '';
  return [issue.path.join('/'), extra].filter((part) => part !== '').join('/');
}

const PAGE_TEXT = z.string().regex(/^[1-9][0-9]{0,5}$/, 'must be a whole number from 1');

/** Query members of a list: `page` from 1, `per_page` from 1 to 100 (30). */
export const PAGING = {
  page: PAGE_TEXT.transform(Number).default(1),
  per_page: PAGE_TEXT.transform(Number)
    .refine((n) => n <= 100, 'must be at most 100')
    .default(30),
};

/** One page of a list, with the total count. */
export function pageOf<T>(all: readonly T[], paging: { page: number; per_page: number }): Reply {
  const { page, per_page } = paging;
  const items = all.slice((page - 1) * per_page, page * per_page);
  return { status: 200, body: { items, page, per_page, total: all.length } };
}
