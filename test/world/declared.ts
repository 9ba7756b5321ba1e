/** Holds real answers to what their routes declare. */
import { expect } from 'vitest';
import type { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../broker/http/errors.ts';
import { errorsOf } from '../../broker/http/openapi-responses.ts';
import type { Route } from '../../broker/http/route.ts';
import { ROUTES } from '../../broker/http/routes.ts';

const addressOf = ({ path }: Route) => new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
const ADDRESSES = ROUTES.map((route) => ({ route, address: addressOf(route) }));

// biome-ignore lint/suspicious/noExplicitAny: whatever came, parsed when it is JSON.
type Answered = { status: number; headers: Headers; body: any; text: string };

/** The route that answers this, if there is one; `path` may have a query. */
export function routeOf(method: string, path: string): Route | undefined {
  const plain = path.replace(/\?.*$/, '');
  return ADDRESSES.find(({ route, address }) => route.method === method && address.test(plain))?.route;
}

/** The schema that an answer of this status is declared with, in the media type in which it came. */
export function schemaOf(route: Route, status: number, type = ''): z.ZodType | undefined {
  const declared = route.answers[status];
  return typeof declared === 'object' ? (declared.also?.[type] ?? declared.schema) : undefined;
}

/** What any address may answer: the documents say so once for all. */
const ANYWHERE: readonly ErrorCode[] = [
  'method_not_allowed',
  'misdirected_request',
  'internal_error',
  'store_unavailable',
];

/**
 * An answer has everything that its declared schema wants, and nothing that the schema does not know; an error is one that
 * the route declares.
 */
export function expectDeclared(method: string, path: string, { status, headers, body, text }: Answered): void {
  const route = routeOf(method, path);
  if (!route) return;
  if (typeof body?.error === 'string' && body.error in ERRORS)
    expect([...errorsOf(route), ...ANYWHERE], `${method} ${path} refuses as it does not declare`).toContain(body.error);
  const type = headers.get('content-type')?.split(';')[0];
  const schema = schemaOf(route, status, type);
  // A refusal where the status is also an answer. Nothing comes of a HEAD.
  if (!schema || body === '' || (typeof body?.correlation_id === 'string' && body.error in ERRORS)) return;
  const declared = route.answers[status];
  const isLines = typeof declared === 'object' && declared.type === 'application/x-ndjson' && declared.type === type;
  for (const value of isLines ? text.split('\n').flatMap((line) => (line ? [JSON.parse(line)] : [])) : [body]) {
    const parsed = schema.safeParse(value);
    expect(parsed.error?.issues ?? [], `${method} ${path} answers what it does not declare`).toEqual([]);
    expect(parsed.data, `${method} ${path} answers more than it declares`).toEqual(value);
  }
}
