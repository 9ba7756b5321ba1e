/** Headers of answers, as the OpenAPI documents describe them. */

export const HEADERS = {
  CorrelationId: { description: 'Names this request in the log.', schema: { type: 'string', format: 'uuid' } },
  RateLimit: {
    description: 'What is left, and in how many seconds it is whole again (draft-ietf-httpapi-ratelimit-headers).',
    schema: { type: 'string' },
    example: '"sign-in";r=9;t=60',
  },
  RateLimitPolicy: { description: 'The limit.', schema: { type: 'string' }, example: '"sign-in";q=10;w=60' },
  RetryAfter: { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
  RequestId: { description: 'What the request said there, if it did.', schema: { type: 'string' } },
  WwwAuthenticate: {
    description: 'RFC 6750 section 3.',
    schema: { type: 'string' },
    example: 'Bearer realm="agent-broker"',
  },
  Allow: { description: 'The methods that this address takes.', schema: { type: 'string' }, example: 'GET, HEAD' },
  CacheControl: {
    description: 'Who may keep the answer, and for how many seconds.',
    schema: { type: 'string' },
    example: 'public, max-age=3600',
  },
  AccessControlAllowOrigin: {
    description: 'Pages of any site may read this.',
    schema: { type: 'string', const: '*' },
  },
  ETag: {
    description: 'The version of the answer, for If-None-Match.',
    schema: { type: 'string' },
    example: '"Gk3v0n2cVJ0"',
  },
  Vary: { description: 'Which header of the request the answer depends on.', schema: { type: 'string' } },
  AuditId: { description: 'The audit row, whose receipt can be fetched.', schema: { type: 'string', format: 'uuid' } },
  IdempotencyReplayed: {
    description: 'The first answer to this Idempotency-Key, repeated: nothing was done again.',
    schema: { type: 'string', const: 'true' },
  },
} as const;

/** The headers that an answer can declare, by their names on the wire. */
export const ANSWER_HEADERS = {
  Allow: 'Allow',
  'Cache-Control': 'CacheControl',
  ETag: 'ETag',
  Vary: 'Vary',
  'Retry-After': 'RetryAfter',
  'X-Svc-Audit-Id': 'AuditId',
  'Idempotency-Replayed': 'IdempotencyReplayed',
} as const satisfies Record<string, keyof typeof HEADERS>;
export type AnswerHeader = keyof typeof ANSWER_HEADERS;
