/** Input schemas of the tools. */
import { z } from 'zod';
import { allowedMembers, schemaProblem } from '../../json/schema-problem.ts';
import type { Caller } from '../client/action.ts';
import { ANYTHING } from './answer.ts';

z.config({ customError: allowedMembers });

/** Most characters shown of a name that the model made up. */
const MAX_SHOWN = 200;

/** Stored before the broker validates the call, so restricted to what a database accepts, as in the broker's own schemas. */
const reasonText = z
  .string()
  .max(2048)
  .refine(
    (text) => !text.includes('\0') && text.isWellFormed(),
    'must not contain NUL characters or unpaired surrogates',
  )
  .optional();

const platform = z.string().min(1).max(64).describe('Id of the platform, as list_permissions names it.');
const scope = z.string().min(1).max(256).describe('The scope that covers the call, one that you hold on the platform.');
const endpoint = z
  .string()
  .min(1)
  .describe(
    'Path on the platform with its query, such as /repos/acme/shop/issues?state=open. No host, no //, no dot segments, no needless escapes.',
  );
const reason = reasonText.describe('Why, in one sentence: a person who has to approve the call reads it.');
const connection_id = z
  .string()
  .optional()
  .describe('Which connection, where the platform has several; left out: the default one.');

/**
 * An object with all of its members: `z.record` silently drops a member `__proto__`, so that another body would be sent than
 * requested. `meta` is the JSON Schema, because a custom type has none.
 */
const objectOf = <Value>(meta: { type: 'object'; additionalProperties: boolean | Record<string, unknown> }) =>
  z
    .custom<Record<string, Value>>(
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
      'must be an object',
    )
    .meta(meta);
const headers = objectOf<string>({ type: 'object', additionalProperties: { type: 'string' } })
  .refine((all) => Object.values(all).every((value) => typeof value === 'string'), 'must be an object of strings')
  .optional()
  .describe('Further headers for the platform.');
const data = objectOf<unknown>({ type: 'object', additionalProperties: true }).describe(
  'The JSON body for the platform.',
);

/** In place of `data`: the literal body, for an operation that takes no object. */
const body = z
  .strictObject({
    list: z
      .array(z.unknown().meta({ anyOf: ANYTHING }))
      .optional()
      .describe('A JSON list.'),
    text: z.string().optional().describe('A text, such as Markdown or XML.'),
    base64: z.string().optional().describe('The bytes of a file, in base64.'),
    content_type: z.string().optional().describe('The media type, such as image/png.'),
  })
  .transform(({ list, text, base64, content_type }, context): WrittenBody => {
    const given = [list, text, base64].filter((one) => one !== undefined);
    const [data] = given;
    if (data !== undefined && given.length === 1)
      return {
        data,
        ...(base64 !== undefined && { encoding: 'base64' as const }),
        ...(content_type !== undefined && { content_type }),
      };
    context.addIssue({ code: 'custom', message: 'give one of list, text and base64' });
    return z.NEVER;
  })
  .optional()
  .describe('Instead of data, only for an operation that takes a list, a text or a file.');

type WrittenBody = { data: string | unknown[]; encoding?: 'base64'; content_type?: string };

/** Flat, because not every client's model can write one of two objects. The broker checks the members, as for every call. */
const caller = z
  .strictObject({
    source: z.string().optional().describe('Who names the person, such as slack. With id.'),
    id: z.string().optional().describe('What source calls them.'),
    assertion: z.string().optional().describe('Instead of both: a JWT about the person.'),
  })
  .transform((given, context): Caller => {
    const { source, id, assertion } = given;
    if (assertion !== undefined && source === undefined && id === undefined) return { assertion };
    if (assertion === undefined && source !== undefined && id !== undefined) return { source, id };
    context.addIssue({ code: 'custom', message: 'give source and id, or assertion alone' });
    return z.NEVER;
  })
  .optional()
  .describe('The person for whom the call is, on platforms with one token per person. Only whom you really act for.');

const call = { platform, scope, endpoint, reason, connection_id, headers, caller };

export const ReadArguments = z.strictObject(call);
export const WriteArguments = z.strictObject({
  ...call,
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST').describe('POST unless said otherwise.'),
  data: data.optional(),
  body,
});
export const DeleteArguments = z.strictObject({ ...call, data: data.optional(), body });

export const CheckArguments = z.strictObject({
  approval_id: z.guid().describe('As a held call answered it.'),
});
export const NoArguments = z.strictObject({});
export const AccessArguments = z.strictObject({
  platform,
  scope: scope.optional().describe('The scope that you need; left out: the platform as a whole.'),
  reason: reasonText.describe('Why, in one sentence: the owner who decides reads it.'),
});

/** Formats the problems of invalid arguments, each with its place. */
export const problemsOf = (error: z.ZodError): string => error.issues.flatMap(problemsIn).join('; ');

function problemsIn(issue: z.core.$ZodIssue): string[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys')
    return [
      ...issue.keys.map(
        (key) => `${[...path, key].map(String).join('.').slice(0, MAX_SHOWN)}: there is no such argument`,
      ),
      issue.message,
    ];
  return [`${path.length === 0 ? 'arguments' : path.map(String).join('.')}: ${schemaProblem(issue)}`];
}
