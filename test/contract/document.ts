/** Loads the served document, and validates answers against it. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect } from 'vitest';
import { type Answer, send } from '../world/agent.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as any JSON.
export type Json = any;

/** Fetches `GET /v1/openapi.json` of a running broker. */
export async function servedDocument(baseUrl: string): Promise<Json> {
  const answer = await send(`${baseUrl}/v1/openapi.json`, {});
  expect(answer.status, answer.text).toBe(200);
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

/** Returns a function that checks an answer against the document: media type, body and headers of its operation and status. */
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
    if (declared.content === undefined) return expect(text).toBe('');
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    expect(Object.keys(declared.content), `${operation} ${status}`).toContain(type);
    const { schema } = declared.content[type];
    if (type === 'text/event-stream' || schema === undefined) return;
    const at = `#/${pointer('paths', path, method.toLowerCase(), 'responses', String(status), 'content', type, 'schema')}`;
    const known = compiled.get(at) ?? ajv.compile({ $ref: `https://document.example/${at}` });
    compiled.set(at, known);
    expect(known(body), `${operation} ${status}: ${text.slice(0, 500)} ${JSON.stringify(known.errors)}`).toBe(true);
  };
}
