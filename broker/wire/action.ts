/** The request body of `POST /v1/actions` (specification, Governed call). */
import { z } from 'zod';
import { METHODS } from '../policy/facts.ts';

/** Stored text must equal the hashed text: PostgreSQL refuses NUL, and would silently rewrite a lone surrogate. */
export const storable = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed();
export const UNSTORABLE = 'must not contain NUL characters or unpaired surrogates';

export const text = (max: number) => z.string().max(max).refine(storable, UNSTORABLE);

export const CallerIdentity = z
  .union(
    [
      z.strictObject({ assertion: text(8192).min(1).describe('JWT from an issuer that the organisation trusts') }),
      z.strictObject({
        source: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,31}$/, 'must match ^[a-z0-9][a-z0-9_.-]{0,31}$'),
        id: text(256).min(1),
      }),
    ],
    'send {"assertion": …}, or {"source": …, "id": …}',
  )
  .describe('whose own upstream token to use, on platforms that hold one per person');

/**
 * A schema for an object that keeps all its members: `z.record` silently drops a member `__proto__`, so that what is judged, shown and sent
 * would differ from the request. `meta`: its JSON Schema, which a custom type lacks.
 */
const asItCame = <Value>(meta: { type: 'object'; additionalProperties: Record<string, unknown> }) =>
  z
    .custom<Record<string, Value>>(
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
      'must be an object',
    )
    .meta(meta);

/** A body that is a JSON object. */
export const ObjectBody = asItCame<unknown>({ type: 'object', additionalProperties: {} });

/** Any JSON body: which kinds an operation takes is checked once its platform is known. */
const Body = z
  .custom<Record<string, unknown> | unknown[] | string>(
    (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
    'must be an object',
  )
  .meta({ anyOf: [{ type: 'object', additionalProperties: {} }, { type: 'array', items: {} }, { type: 'string' }] });

const HeaderMap = asItCame<string>({ type: 'object', additionalProperties: { type: 'string' } }).superRefine(
  (headers, context) => {
    for (const [name, value] of Object.entries(headers))
      if (typeof value !== 'string') context.addIssue({ code: 'custom', path: [name], message: 'must be a string' });
  },
);

export const Action = z.strictObject({
  platform: text(64).min(1).describe('platform id'),
  endpoint: text(8192).min(1).describe('platform-relative path, with its query; begins with /'),
  method: z.enum(METHODS),
  scope: text(256).min(1).describe('the permission scope that this call needs'),
  data: Body.optional().describe(
    'body forwarded upstream; not with GET. A list or a text only where the operation takes one',
  ),
  encoding: z
    .literal('base64', 'must be "base64", or left out')
    .optional()
    .describe('`data` is a text that encodes bytes, of an operation that accepts a file'),
  headers: HeaderMap.optional().describe('extra headers forwarded upstream'),
  connection_id: z
    .guid()
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('which connection, when the platform has several'),
  reason: text(2048).optional().describe('why, in the words of the agent: shown to the approver and recorded'),
  caller: CallerIdentity.optional(),
});
export type Action = z.infer<typeof Action>;
