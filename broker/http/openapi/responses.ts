/** Lists the answers and errors of a route for the OpenAPI document: those that it declares, and those that follow from its kind. */

import { STATUS_CODES } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { present } from '../../runtime/present.ts';
import { membersOfAll } from '../error-members.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import { PROBLEM_TYPE, Problem } from '../problem.ts';
import type { AnswerDeclaration, Route } from '../route.ts';
import { EXAMPLES } from './examples.ts';
import { ANSWER_HEADERS, type AnswerHeader, type HEADERS } from './headers.ts';
import type { JsonSchema, Schemas } from './schemas.ts';

const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const headerRef = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` });

const SAMPLE_ID = '0199a3c4-7f52-7c1e-9d7a-3f0f6a4b2c11';

/** The error envelope (specification, Error shapes). Further members of some errors: error-members.ts. */
export const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error', 'detail', 'correlation_id'],
  properties: {
    error: { type: 'string', description: 'a code, for programs: branch on it' },
    detail: { type: 'string', description: 'what was wrong and what to do next, for people; may change' },
    correlation_id: { type: 'string', format: 'uuid', description: 'names this request in the log' },
    audit_id: { type: 'string', format: 'uuid', description: 'of a governed call that was recorded: its audit row' },
    report_hint: {
      type: 'object',
      description: 'where to report an answer that should have been another, and with what',
      required: ['url', 'suggested_payload'],
      properties: { url: { type: 'string', format: 'uri' }, suggested_payload: { type: 'object' } },
    },
  },
};

export function responsesOf(route: Route, schemas: Schemas): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, declared] of Object.entries(route.answers)) {
    const answer: Answer = typeof declared === 'string' ? { description: declared } : declared;
    const example = answer.example ?? EXAMPLES[route.capability]?.answers?.[Number(status)];
    const hasBody = !answer.empty && (answer.type !== undefined || answer.schema !== undefined || /^2/.test(status));
    responses[status] = {
      description: answer.description,
      headers: headersOf(route, Number(status), answer.headers),
      ...(hasBody && status !== '204' && { content: contentOf(answer, schemas, example) }),
    };
  }
  const { type, form, sample } = errorForm(route, schemas);
  for (const [status, codes] of codesByStatus(route)) {
    const error = { schema: errorSchema(route, form, codes, schemas), example: sample(present(codes[0], 'code')) };
    const known = responses[status];
    const isAnswer = known?.content !== undefined;
    responses[status] = {
      description: `${known ? `${known.description} ${isAnswer ? 'Or refused: ' : ''}` : ''}${codes.join(', ')}.`,
      headers: { ...(known?.headers as JsonSchema), ...headersOf(route, status, headersOfErrors(codes)) },
      content: known && isAnswer ? either(known, type, error.schema) : { [type]: error },
    };
  }
  responses.default = {
    description: 'Anything else that kept the request from being answered: 405, 421, 500, 503.',
    headers: {
      'X-Correlation-Id': headerRef('CorrelationId'),
      Allow: headerRef('Allow'),
      'Retry-After': headerRef('RetryAfter'),
    },
    content: { [type]: { schema: form, example: sample('store_unavailable') } },
  };
  return responses;
}

/** Errors that have a header of their own. A 503 has `Retry-After` only if nothing was done. */
const HEADERS_OF_ERRORS: Partial<Record<ErrorCode, AnswerHeader>> = {
  agent_not_active: 'Retry-After',
  audit_unavailable: 'Retry-After',
  method_not_allowed: 'Allow',
  store_restored: 'Retry-After',
};

const headersOfErrors = (codes: ErrorCode[]): AnswerHeader[] => codes.flatMap((code) => HEADERS_OF_ERRORS[code] ?? []);

/** Returns the media type, schema and example of a route's errors. */
function errorForm({ dialect }: Route, schemas: Schemas) {
  const common = { detail: 'What was wrong, and what to do next.', correlation_id: SAMPLE_ID };
  if (dialect === 'line') return LINES;
  return dialect === 'problem'
    ? {
        type: PROBLEM_TYPE,
        form: schemas.of(Problem, 'output'),
        sample: (error: ErrorCode) => ({ title: STATUS_CODES[ERRORS[error]], status: ERRORS[error], error, ...common }),
      }
    : {
        type: 'application/json',
        form: schemaRef('ErrorEnvelope'),
        sample: (error: ErrorCode) => ({ error, ...common }),
      };
}

/** Returns the schema of the errors of one status. Problems and lines of text have no members by code. */
function errorSchema(route: Route, form: JsonSchema, codes: ErrorCode[], schemas: Schemas): JsonSchema {
  if (route.dialect === 'line') return form;
  const isProblem = route.dialect === 'problem';
  const more = isProblem ? {} : (schemas.of(membersOfAll(route, codes), 'output').properties as JsonSchema);
  return { allOf: [form, { properties: { error: { enum: codes }, ...more } }] };
}

/** For errors in one line of text: the code is part of the line, which no schema can express. */
const LINES = {
  type: 'text/plain',
  form: { type: 'string' },
  sample: (error: ErrorCode) => `agent-broker: ${error} - acme/shop: what was wrong, and what to do next.`,
};

type Answer = Exclude<AnswerDeclaration, string>;

function contentOf({ type, schema, also }: Answer, schemas: Schemas, example: unknown): JsonSchema {
  const media = {
    ...(schema && { schema: schemas.of(schema, 'output') }),
    ...(example !== undefined && { example }),
  };
  const others = Object.entries(also ?? {}).map(([name, other]) => [name, { schema: schemas.of(other, 'output') }]);
  return { [type ?? 'application/json']: media, ...Object.fromEntries(others) };
}

/** Merges the schemas of a status that is an answer as well as an error. */
function either(known: JsonSchema, type: string, error: JsonSchema): JsonSchema {
  const content = known.content as Record<string, { schema?: JsonSchema }> | undefined;
  const { schema, ...more } = content?.[type] ?? {};
  const isSame = isDeepStrictEqual(schema, error);
  return { ...content, [type]: { ...more, schema: schema && !isSame ? { anyOf: [schema, error] } : error } };
}

function headersOf(
  { limit, strangers, anyOrigin, dialect }: Route,
  status: number,
  more: readonly AnswerHeader[] = [],
): JsonSchema {
  const own = more.map((name) => [name, headerRef(ANSWER_HEADERS[name])]);
  return {
    'X-Correlation-Id': headerRef('CorrelationId'),
    ...(anyOrigin && { 'Access-Control-Allow-Origin': headerRef('AccessControlAllowOrigin') }),
    ...((limit || strangers) && {
      RateLimit: headerRef('RateLimit'),
      'RateLimit-Policy': headerRef('RateLimitPolicy'),
    }),
    ...(dialect === 'problem' && { 'X-Request-ID': headerRef('RequestId') }),
    ...(status === 401 && { 'WWW-Authenticate': headerRef('WwwAuthenticate') }),
    // Refused requests of git are recorded, too.
    ...(dialect === 'line' && status !== 401 && { 'X-Svc-Audit-Id': headerRef('AuditId') }),
    ...(status === 429 && { 'Retry-After': headerRef('RetryAfter') }),
    ...Object.fromEntries(own),
  };
}

/** Returns the error codes that a route declares, and those that follow from its declaration. */
export const errorsOf = (route: Route): ErrorCode[] => [...new Set([...route.errors, ...impliedErrors(route)])].sort();

const codesByStatus = (route: Route): Map<number, ErrorCode[]> => Map.groupBy(errorsOf(route), (code) => ERRORS[code]);

function impliedErrors({ auth, body, query, limit, strangers, concurrency }: Route): ErrorCode[] {
  const owners = auth.includes('owner');
  const agents = auth.includes('agent') || auth === 'git';
  const anyone = auth === 'anyone';
  const given: [ErrorCode, boolean][] = [
    ['invalid_request', body !== undefined || query !== undefined || auth !== 'none'],
    ['payload_too_large', body !== undefined],
    ['missing_token', auth !== 'none' && !anyone],
    ['invalid_token', auth !== 'none'],
    ['token_expired', owners || agents || anyone],
    ['invalid_signature', owners || agents || anyone],
    // The owner's role does not suffice, or the request comes from a page of another site.
    ['forbidden', owners],
    ['rate_limited', agents || anyone || limit !== undefined || strangers !== undefined],
    ['too_many_streams', concurrency !== undefined],
  ];
  return given.flatMap(([code, applies]) => (applies ? [code] : []));
}
