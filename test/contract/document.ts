/** Loads the served document, and validates answers against it. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect } from 'vitest';
import { type Answer, expectStatus, send } from '../world/agent.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as any JSON.
export type Json = any;

/** Fetches `GET /v1/openapi.json` of a running broker. */
export async function servedDocument(baseUrl: string): Promise<Json> {
  const answer = await expectStatus(200, send(`${baseUrl}/v1/openapi.json`, {}));
  return answer.body;
}

/** Lists every operation as `GET /v1/x/{id}`. */
export const operationsOf = (document: Json): string[] =>
  Object.entries<object>(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );

export function operationOf(document: Json, operation: string): Json {
  const [method = '', path = ''] = operation.split(' ');
  return document.paths[path]?.[method.toLowerCase()];
}

const pointer = (...parts: string[]) => parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');

/** Headers that occur only in some of the answers for which the document names them. */
const SOMETIMES = ['Retry-After', 'Idempotency-Replayed', 'RateLimit', 'RateLimit-Policy', 'X-Request-ID'];

/** Headers of HTTP itself, and those with the same value on all answers of their kind, which no client has to read. */
const GENERAL = new Set([
  'connection',
  'content-length',
  'content-security-policy',
  'content-type',
  'cross-origin-resource-policy',
  'date',
  'keep-alive',
  'referrer-policy',
  'transfer-encoding',
  'x-accel-buffering',
  'x-content-type-options',
]);

/** Lists the headers of an answer that the document does not name. It names `Cache-Control` where an answer may be kept. */
function unnamedHeaders(declared: Json, headers: Answer['headers']): string[] {
  const named = new Set(Object.keys(declared.headers ?? {}).map((name) => name.toLowerCase()));
  const isKept = !['no-cache', 'no-store'].includes(headers.get('cache-control') ?? '');
  return [...headers.keys()].filter(
    (name) => !named.has(name) && !GENERAL.has(name) && (name !== 'cache-control' || isKept),
  );
}

/**
 * Lists the members of a value that the document does not name. JSON Schema allows them, but a client that is generated from the document cannot read
 * them. A schema that allows further members, such as one of a published standard, is not examined, except `_meta`.
 */
function unnamedMembers(document: Json, schema: Json, value: Json, at = ''): string[] {
  const { named, isOpen, items } = membersOf(document, schema);
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((one) => unnamedMembers(document, items, one, `${at}[]`));
  if ((isOpen && at !== '._meta') || named.size === 0) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const known = named.get(name);
    return known === undefined ? [`${at}.${name}`] : unnamedMembers(document, known, member, `${at}.${name}`);
  });
}

/** Collects what a schema and its alternatives say of the members of an object, and of the items of an array. */
function membersOf(document: Json, schema: Json): { named: Map<string, Json>; isOpen: boolean; items?: Json } {
  if (schema?.$ref !== undefined) {
    const target = schema.$ref.slice('#/'.length).split('/');
    return membersOf(
      document,
      target.reduce((part: Json, key: string) => part[key], document),
    );
  }
  const { properties = {}, additionalProperties, items, allOf = [], anyOf = [], oneOf = [] } = schema ?? {};
  const parts = [...allOf, ...anyOf, ...oneOf].map((part) => membersOf(document, part));
  return {
    named: new Map([...parts.flatMap(({ named }) => [...named]), ...Object.entries(properties)]),
    isOpen: ![undefined, false].includes(additionalProperties) || parts.some(({ isOpen }) => isOpen),
    items: items ?? parts.find((part) => part.items !== undefined)?.items,
  };
}

/**
 * Returns a function that checks an answer against the document: media type, body and headers of its operation and status. Every member has to be named.
 */
export function makeExpectation(document: Json): (operation: string, answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ ...document, $id: 'https://document.example/' });
  const compiled = new Map<string, ValidateFunction>();
  return (operation, { status, headers, body, text }) => {
    const [method = '', path = ''] = operation.split(' ');
    const declared = operationOf(document, operation)?.responses[status];
    expect(declared, `the document has no ${status} of ${operation}: ${text.slice(0, 300)}`).toBeDefined();
    for (const name of Object.keys(declared.headers ?? {}))
      if (!SOMETIMES.includes(name) || (name === 'Retry-After' && status === 429))
        expect(headers.get(name), `${operation} ${status} has no ${name}`).not.toBeNull();
    expect(
      unnamedHeaders(declared, headers),
      `headers that the document does not name: ${operation} ${status}`,
    ).toEqual([]);
    if (declared.content === undefined) return expect(text).toBe('');
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    expect(Object.keys(declared.content), `${operation} ${status}`).toContain(type);
    const { schema } = declared.content[type];
    if (type === 'text/event-stream' || schema === undefined) return;
    const at = `#/${pointer('paths', path, method.toLowerCase(), 'responses', String(status), 'content', type, 'schema')}`;
    const known = compiled.get(at) ?? ajv.compile({ $ref: `https://document.example/${at}` });
    compiled.set(at, known);
    expect(known(body), `${operation} ${status}: ${text.slice(0, 500)} ${JSON.stringify(known.errors)}`).toBe(true);
    expect(
      unnamedMembers(document, schema, body),
      `members that the document does not name: ${operation} ${status}`,
    ).toEqual([]);
  };
}
