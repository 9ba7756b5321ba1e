/** Manifest fields for bodies and answers that are not JSON, and for where calls are sent. */
import { z } from 'zod';
import { BODY_KINDS } from '../policy/platform-rules.ts';
import { JsonPointer, PlatformUrl } from './fields.ts';

const Kind = z.enum(BODY_KINDS);

export const TRANSFER_FIELDS = {
  body: z.enum(['json', 'form']).optional().describe('How `data` is encoded: json (the default), or form.'),
  raw_bodies: z
    .array(z.enum(['json', 'form']))
    .min(1)
    .max(2)
    .optional()
    .describe(
      'Of a platform that reads JSON and forms alike, by their Content-Type: what its clients may send on /proxy. Unless said, what `body` says: a form that is sent to a platform of JSON counts as a body that nobody can read, so that rules which have to know it refuse the call.',
    ),
  bodies: z
    .record(
      z.string(),
      z.union([Kind, z.array(Kind).min(1).max(BODY_KINDS.length)], {
        error: `write one of ${BODY_KINDS.join(', ')}, or a list of them`,
      }),
    )
    .optional()
    .describe(
      'Operations that take another body than `body` says: an object as json, form or multipart (files in parts), a JSON list, text, or bytes (base64 with `encoding`).',
    ),
  base_urls: z
    .record(z.string(), PlatformUrl)
    .optional()
    .describe(
      'Operations at another address of the platform, which gets the same credential: the prefix of their endpoint instead of `base_url`, such as a host for uploads.',
    ),
  answer_urls: z
    .record(z.string(), z.array(z.string().min(1).max(100)).min(1).max(10))
    .optional()
    .describe(
      'Operations whose answer has addresses to which clients go on sending their key, such as one for an upload: the names of members of the answer. On /proxy they lead through the broker.',
    ),
  masks: z
    .record(z.string(), z.array(z.string().min(1).max(200)).min(1).max(20))
    .optional()
    .describe(
      'Operations in whose answers the platform hands out keys of its own, and the members that hold them: they are masked for every agent, as rules with the effect mask do. Names at any depth, or paths such as /data/*/token.',
    ),
  error_status: z
    .record(z.string(), z.number().int().min(400).max(499))
    .optional()
    .describe(
      'Of a platform with `failed_if`: operations whose clients look at the status alone, and the status that they give up at. A refusal on /proxy has it there; with 429 the reason stands in Retry-After, where clients look.',
    ),
  follow: z
    .array(z.string())
    .max(200)
    .optional()
    .describe(
      'Reads that the platform answers with a redirect to a signed address elsewhere, such as "GET /reports/*/download": the broker follows it once, without the credential, to https and a public address.',
    ),
  idle_seconds: z
    .int()
    .min(1)
    .max(600)
    .optional()
    .describe(
      'How many seconds an answer may be silent before it is cut, unless the connection says otherwise; unless said here, 60 of a stream, 30 of an answer to POST /v1/actions, and 120 of a tool of an MCP server. Models think for minutes before they answer.',
    ),
  failed_if: z
    .strictObject({
      at: JsonPointer.describe('A JSON pointer into the body of an answer.'),
      is: z.union([z.boolean(), z.string().max(100)]).describe('The value that says so.'),
    })
    .optional()
    .describe(
      'What in the body of an answer with a status of success says that the call failed, such as { at: /ok, is: false }. People are shown it; agents get the answer as it is.',
    ),
};
