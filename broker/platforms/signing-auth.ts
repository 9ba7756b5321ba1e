/** Kinds of `auth` that sign each request; the key is the secret of a connection, and is never sent. */
import { z } from 'zod';
import { PlatformHeaderName, recordOf } from './fields.ts';

export const AwsSigV4Auth = z
  .strictObject({
    type: z.literal('aws_sigv4'),
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,50}$/, 'write the name of a region, such as "eu-central-1"')
      .describe('The region of the credential scope, such as eu-central-1.'),
    service: z
      .string()
      .regex(/^[a-z0-9-]{1,50}$/, 'write the signing name of a service, such as "s3" or "execute-api"')
      .describe('The signing name of the service, such as s3, dynamodb or execute-api.'),
    unsigned_payload: z
      .boolean()
      .optional()
      .describe(
        'Whether a body that is sent as it comes may go without its hash being signed (UNSIGNED-PAYLOAD), over TLS only. S3 takes that.',
      ),
  })
  .describe(
    'Each request is signed (AWS Signature Version 4); the secret has access_key_id, secret_access_key and, for temporary ones, session_token.',
  );
export type AwsSigV4Auth = z.infer<typeof AwsSigV4Auth>;

/** The parts that a template may name. `signature`: in headers only. */
const TEMPLATE_PARTS = [
  'method',
  'host',
  'path',
  'query',
  'target',
  'timestamp',
  'nonce',
  'key_id',
  'body',
  'body_sha256',
  'body_sha256_base64',
  'signature',
] as const;
export type TemplatePart = (typeof TEMPLATE_PARTS)[number];

/** A parsed template: text, or a part of the request. */
export type TemplatePieces = (string | { part: TemplatePart })[];

/** Parses a template: `{part}` stands for that part, everything else for itself. @throws Error that names an unknown part */
export function readTemplate(text: string): TemplatePieces {
  return text.split(/(\{[A-Za-z0-9_]+\})/).flatMap((piece): TemplatePieces => {
    if (piece === '') return [];
    const [, name] = /^\{([A-Za-z0-9_]+)\}$/.exec(piece) ?? [];
    if (name === undefined) return [piece];
    const part = TEMPLATE_PARTS.find((one) => one === name);
    if (part === undefined)
      throw new Error(`names {${name}}; there are ${TEMPLATE_PARTS.map((one) => `{${one}}`).join(', ')}`);
    return [{ part }];
  });
}

/** `none`: parts that are not allowed in the template, with the error message. */
const Template = (longest: number, none: Partial<Record<TemplatePart, string>>) =>
  z
    .string()
    .min(1, 'is empty')
    .max(longest)
    .superRefine((text, context) => {
      const issue = (message: string) => context.addIssue({ code: 'custom', message });
      try {
        for (const piece of readTemplate(text)) {
          const why = typeof piece === 'string' ? undefined : none[piece.part];
          if (why !== undefined) issue(why);
        }
      } catch (error) {
        issue(error instanceof Error ? error.message : String(error));
      }
    });

const IS_SIGNED = 'names {signature}, which is computed from it';
const NO_BODY = 'names {body}, which no header carries';

export const HmacAuth = z
  .strictObject({
    type: z.literal('hmac'),
    algorithm: z
      .enum(['sha256', 'sha384', 'sha512', 'sha1'])
      .optional()
      .describe('The hash function; sha256 by default.'),
    template: Template(1_000, { signature: IS_SIGNED }).describe(
      `What is signed: text with parts of the request, such as "{timestamp}.{method}.{target}.{body}". Parts: ${TEMPLATE_PARTS.slice(0, -1).join(', ')}.`,
    ),
    headers: recordOf(
      PlatformHeaderName,
      Template(1_000, { body: NO_BODY }).regex(/^[\x20-\x7e]*$/, 'write printable ASCII'),
    )
      .refine(
        (headers) => Object.values(headers).some((text) => text.includes('{signature}')),
        'has no header with {signature}',
      )
      .describe('The headers that are sent, as templates; one has {signature}.'),
    encoding: z
      .enum(['hex', 'base64', 'base64url'])
      .optional()
      .describe('How the signature is written; hex by default.'),
    key_encoding: z
      .enum(['text', 'hex', 'base64'])
      .optional()
      .describe('How the key of the secret is written; text, which is the default, is used as UTF-8.'),
    timestamp: z
      .enum(['seconds', 'milliseconds', 'iso8601'])
      .optional()
      .describe(
        'How {timestamp} is written: Unix time in seconds, which is the default, or in milliseconds, or ISO 8601 in UTC.',
      ),
  })
  .describe(
    'Each request is signed with a keyed hash (HMAC, RFC 2104); the secret has key and, where a template names it, key_id.',
  );
export type HmacAuth = z.infer<typeof HmacAuth>;

type Templates = Pick<HmacAuth, 'template' | 'headers'>;

const names = ({ template, headers }: Templates, part: RegExp): boolean =>
  [template, ...Object.values(headers)].some((text) => part.test(text));

/** Whether one of the templates names the id of the key. */
export const namesKeyId = (auth: Templates): boolean => names(auth, /\{key_id\}/);

/** Whether one of the templates names the body, or its hash. */
export const namesBody = (auth: Templates): boolean => names(auth, /\{body(?:_sha256(?:_base64)?)?\}/);
