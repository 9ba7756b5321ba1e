/** Checks real answers against the declarations of their routes. */
import { expect } from 'vitest';
import type { z } from 'zod';
import { membersOf } from '../../broker/http/error-members.ts';
import { ERRORS, type ErrorCode } from '../../broker/http/errors.ts';
import { ERROR_SCHEMA, errorsOf } from '../../broker/http/openapi/responses.ts';
import type { Route } from '../../broker/http/route.ts';
import { ROUTES } from '../../broker/http/routes.ts';

const addressOf = ({ path }: Route) => new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
const ADDRESSES = ROUTES.map((route) => ({ route, address: addressOf(route) }));

// biome-ignore lint/suspicious/noExplicitAny: whatever came, parsed when it is JSON.
type Answered = { status: number; headers: Headers; body: any; text: string };

/** Finds the route that serves this request, if there is one; `path` may have a query. */
export function routeOf(method: string, path: string): Route | undefined {
  const plain = path.replace(/\?.*$/, '');
  return ADDRESSES.find(({ route, address }) => route.method === method && address.test(plain))?.route;
}

/** Returns the declared schema of an answer with this status and media type. */
export function schemaOf(route: Route, status: number, type = ''): z.ZodType | undefined {
  const declared = route.answers[status];
  return typeof declared === 'object' ? (declared.also?.[type] ?? declared.schema) : undefined;
}

/** Errors that any address may return: the documents list them once for all. */
const ANYWHERE: readonly ErrorCode[] = [
  'method_not_allowed',
  'misdirected_request',
  'internal_error',
  'store_unavailable',
];

/** Checks that an error has only members that the documents name. */
function expectNamedMembers(route: Route, body: { error: ErrorCode }): void {
  const named = { ...(ERROR_SCHEMA.properties as object), ...membersOf(route, body.error) };
  const unnamed = Object.keys(body).filter((member) => !(member in named));
  expect(unnamed, `${route.method} ${route.path} refuses with members that the documents do not name`).toEqual([]);
}

/** Checks that an answer matches its declared schema exactly, without unknown members, and that an error is one that the route declares. */
export function expectDeclared(method: string, path: string, { status, headers, body, text }: Answered): void {
  const route = routeOf(method, path);
  if (!route) return;
  if (typeof body?.error === 'string' && body.error in ERRORS) {
    expect([...errorsOf(route), ...ANYWHERE], `${method} ${path} refuses as it does not declare`).toContain(body.error);
    if (route.dialect === undefined && !schemaOf(route, status)) expectNamedMembers(route, body);
  }
  const type = headers.get('content-type')?.split(';')[0];
  const schema = schemaOf(route, status, type);
  // The status is used for refusals as well as for an answer. An answer to HEAD has no body.
  if (!schema || body === '' || (typeof body?.correlation_id === 'string' && body.error in ERRORS)) return;
  const declared = route.answers[status];
  const isLines = typeof declared === 'object' && declared.type === 'application/x-ndjson' && declared.type === type;
  for (const value of isLines ? text.split('\n').flatMap((line) => (line ? [JSON.parse(line)] : [])) : [body]) {
    const parsed = schema.safeParse(value);
    expect(parsed.error?.issues ?? [], `${method} ${path} answers what it does not declare`).toEqual([]);
    expect(parsed.data, `${method} ${path} answers more than it declares`).toEqual(value);
  }
}
