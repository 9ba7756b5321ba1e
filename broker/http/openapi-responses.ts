/** What a route may answer, for the OpenAPI document: its answers, its errors, and what every route of its kind may refuse. */
import { ERRORS, type ErrorCode } from './errors.ts';
import type { JsonSchema, Schemas } from './openapi-schemas.ts';
import { PROBLEM_TYPE, Problem } from './problem.ts';
import type { Route } from './route.ts';

const ref = (kind: 'headers' | 'schemas', name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** Specification, Error shapes: the envelope. Some errors bring members of their own. */
export const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error', 'detail', 'correlation_id'],
  properties: {
    error: { type: 'string', description: 'a code, for programs' },
    detail: { type: 'string', description: 'what was wrong and what to do next, for people' },
    correlation_id: { type: 'string', format: 'uuid', description: 'names this request in the log' },
  },
};

export const HEADERS: JsonSchema = {
  CorrelationId: { description: 'Names this request in the log.', schema: { type: 'string', format: 'uuid' } },
  RateLimit: {
    description: 'What is left, and in how many seconds it is whole again (draft-ietf-httpapi-ratelimit-headers).',
    schema: { type: 'string' },
    example: '"sign-in";r=9;t=60',
  },
  RateLimitPolicy: { description: 'The limit.', schema: { type: 'string' }, example: '"sign-in";q=10;w=60' },
  RetryAfter: { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
  RequestId: { description: 'What the request said there, if it did.', schema: { type: 'string' } },
  WwwAuthenticate: { description: 'RFC 6750 section 3.', schema: { type: 'string' } },
};

export function responsesOf(route: Route, schemas: Schemas): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    const { description, schema, type } = typeof answer === 'string' ? { description: answer } : answer;
    const hasBody = type !== undefined || schema !== undefined || /^2/.test(status);
    const media = { ...(schema && { schema: schemas.of(schema, 'output') }) };
    responses[status] = {
      description,
      headers: headersOf(route, Number(status)),
      ...(hasBody && status !== '204' && { content: { [type ?? 'application/json']: media } }),
    };
  }
  const { type, form } = errorForm(route, schemas);
  for (const [status, codes] of codesByStatus(route)) {
    const schema = { allOf: [form, { properties: { error: { enum: codes } } }] };
    const refused = { [type]: { schema } };
    const known = responses[status];
    responses[status] = known
      ? {
          ...known,
          description: `${known.description} Or refused: ${codes.join(', ')}.`,
          content: either(known, type, schema),
        }
      : { description: `${codes.join(', ')}.`, headers: headersOf(route, status), content: refused };
  }
  responses.default = {
    description: 'Anything else that kept the request from being answered: 405, 421, 500, 503.',
    headers: { 'X-Correlation-Id': ref('headers', 'CorrelationId') },
    content: { [type]: { schema: form } },
  };
  return responses;
}

/** The media type of a route's errors, and what all of them have. */
function errorForm({ dialect }: Route, schemas: Schemas): { type: string; form: JsonSchema } {
  return dialect === 'problem'
    ? { type: PROBLEM_TYPE, form: schemas.of(Problem, 'output') }
    : { type: 'application/json', form: ref('schemas', 'Error') };
}

/** A status that is an answer as well as an error: one or the other. */
function either(known: JsonSchema, type: string, error: JsonSchema): JsonSchema {
  const content = known.content as Record<string, { schema?: JsonSchema }> | undefined;
  const { schema } = content?.[type] ?? {};
  return { ...content, [type]: { schema: schema ? { anyOf: [schema, error] } : error } };
}

function headersOf({ limit, strangers, dialect }: Route, status: number): JsonSchema {
  return {
    'X-Correlation-Id': ref('headers', 'CorrelationId'),
    ...((limit || strangers) && {
      RateLimit: ref('headers', 'RateLimit'),
      'RateLimit-Policy': ref('headers', 'RateLimitPolicy'),
    }),
    ...(dialect === 'problem' && { 'X-Request-ID': ref('headers', 'RequestId') }),
    ...(status === 401 && { 'WWW-Authenticate': ref('headers', 'WwwAuthenticate') }),
    ...(status === 429 && { 'Retry-After': ref('headers', 'RetryAfter') }),
  };
}

/** The codes that a route declares and those that follow from its declaration. */
export const errorsOf = (route: Route): ErrorCode[] => [...new Set([...route.errors, ...impliedErrors(route)])].sort();

const codesByStatus = (route: Route): Map<number, ErrorCode[]> => Map.groupBy(errorsOf(route), (code) => ERRORS[code]);

function impliedErrors({ auth, body, query, limit, strangers, atOnce }: Route): ErrorCode[] {
  const owners = auth.includes('owner');
  const agents = auth.includes('agent');
  const anyone = auth === 'anyone';
  const given: [ErrorCode, boolean][] = [
    ['invalid_request', body !== undefined || query !== undefined || auth !== 'none'],
    ['payload_too_large', body !== undefined],
    ['missing_token', auth !== 'none' && !anyone],
    ['invalid_token', auth !== 'none'],
    ['token_expired', owners || agents || anyone],
    ['invalid_signature', agents || anyone],
    // A role that may less, or a browser that another site sent here.
    ['forbidden', owners],
    ['rate_limited', limit !== undefined || strangers !== undefined],
    ['too_many_streams', atOnce !== undefined],
  ];
  return given.flatMap(([code, applies]) => (applies ? [code] : []));
}
