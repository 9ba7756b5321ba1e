/** The result format of all tools: structured content for programs, and text for models. */
import { z } from 'zod';
import { describeMedia, type Media, mediaOf, withoutMedia } from './media.ts';

/** Schema of any JSON, one type in each branch: some clients do not support schemas without a type, or with several. */
export const ANYTHING = ['object', 'array', 'string', 'number', 'boolean', 'null'].map((type) => ({
  type,
  // Prevents zod from merging the branches into a list of types.
  description: `JSON ${type}`,
}));

export const Structured = z.object({
  status: z
    .enum([
      'answered',
      'pending_approval',
      'denied',
      'expired',
      'refused',
      'halted',
      'not_ready',
      'failed',
      'granted',
      'permissions',
    ])
    .describe('What became of it. pending_approval: nothing was sent yet, and a person decides.'),
  upstream_status: z.int().optional().describe('HTTP status of the platform.'),
  data: z.unknown().optional().meta({ description: 'What the platform answered.', anyOf: ANYTHING }),
  media_type: z.string().optional().describe('Of an answer that is no text: what it is. Its bytes are no data here.'),
  truncated: z.boolean().optional().describe('data is only the beginning, as text.'),
  bytes: z.int().optional().describe('How long the whole is, when data is truncated or no text.'),
  location: z.string().optional().describe('Where the platform redirects to; it was not followed.'),
  followed: z.string().optional().describe('The host that the platform redirected to, whose answer this is.'),
  upstream_headers: z
    .record(z.string(), z.string())
    .optional()
    .describe('Headers of its answer: link has the next page, retry-after when to come again.'),
  dropped_headers: z.array(z.string()).optional(),
  approval_id: z.string().optional().describe('For check_approval.'),
  approval_url: z.string().optional().describe('Where a person decides. Show it to them.'),
  consent_url: z.string().optional().describe('Where the person of the call connects the platform. For them alone.'),
  expires_at: z.string().optional(),
  corrected: z
    .looseObject({ endpoint: z.string() })
    .optional()
    .describe('The call as a person corrected it: endpoint and data that count, in place of yours.'),
  note: z.string().optional().describe('The note of the person who decided. Read it.'),
  audit_id: z.string().optional(),
  code: z.string().optional().describe('Why not, for programs.'),
  detail: z.string().optional().describe('Why not, in words.'),
  correlation_id: z.string().optional().describe('By which the log of the broker has the error. Tell the person.'),
  violating: z.array(z.string()).optional().describe('Recipients or repositories that the grant does not reach.'),
  limit: z
    .looseObject({ used: z.number(), most: z.number(), left: z.number(), per: z.string(), resets_at: z.string() })
    .optional()
    .describe('The limit that the call is beyond, what is left of it, and when the next period begins.'),
  retry_after_seconds: z.number().optional(),
  next: z.string().optional().describe('What to do now.'),
  permissions: z.record(z.string(), z.unknown()).optional(),
});

export type Structured = z.output<typeof Structured>;

export type ToolAnswer = {
  content: ({ type: 'text'; text: string } | Media)[];
  structuredContent: Record<string, unknown>;
  isError?: boolean;
};

/** Limit of a platform's response for a model. The same as for results of approved calls. */
const MAX_DATA_BYTES = 256 * 1024;

const FAILURES: readonly Structured['status'][] = ['denied', 'expired', 'refused', 'halted', 'not_ready', 'failed'];

/**
 * The tool result with this content. Anything but a plain platform response begins with a sentence, because some clients show
 * models only the text.
 */
export function toolAnswer(given: Answered): ToolAnswer {
  const { told, media } = withoutBytes(given);
  const facts = bounded(withoutGaps(told));
  const { status, detail, next, note } = facts;
  const words = [
    detail,
    note === undefined ? undefined : `The person who decided wrote: ${note}`,
    next === undefined ? undefined : `What to do now: ${next}`,
  ].filter((text) => text !== undefined);
  const json = { type: 'text' as const, text: JSON.stringify(facts) };
  const isError = FAILURES.includes(status) || (status === 'answered' && isPlatformError(given));
  const texts = words.length === 0 ? [json] : [{ type: 'text' as const, text: words.join('\n') }, json];
  return {
    content: [...texts, ...media],
    structuredContent: facts,
    ...(isError && { isError }),
  };
}

/** Whether the platform answered an error: by its HTTP status, or as an MCP server whose tool failed (MCP, "Error Handling" of tools). */
function isPlatformError({ upstream_status: status = 200, data }: Structured): boolean {
  if (status >= 400) return true;
  return isObject(data) && ((data.isError === true && Array.isArray(data.content)) || isRpcError(data));
}

/** Whether `data` is an error of JSON-RPC, as the broker returns it: nothing but `error`, with an integer as its code (JSON-RPC 2.0 section 5.1). */
const isRpcError = ({ error, ...more }: Record<string, unknown>): boolean =>
  isObject(error) &&
  Number.isInteger(error.code) &&
  typeof error.message === 'string' &&
  Object.keys(more).length === 0;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** `encoding`: base64 when the response is binary. */
export type Answered = Structured & { encoding?: string | undefined };

/** Moves bytes out of `data`: base64 would cost the model a long text that it cannot read. */
function withoutBytes({ encoding, ...given }: Answered): { told: Structured; media: Media[] } {
  const { data, media_type: type, truncated, audit_id: auditId, detail, ...others } = given;
  if (encoding === undefined || typeof data !== 'string') {
    const { data: rest, media, words } = withoutMedia(data);
    return { told: { ...given, media_type: undefined, data: rest, detail: sentences(detail, words) }, media };
  }
  const bytes = truncated ? undefined : Buffer.byteLength(data, 'base64');
  const media = truncated ? undefined : mediaOf(data, type, `agent-broker:answer/${auditId ?? 'result'}`);
  const words = sentences(detail, describeMedia(bytes, type, media !== undefined));
  return {
    told: { ...others, media_type: type, bytes, audit_id: auditId, detail: words },
    media: media ? [media] : [],
  };
}

const sentences = (...parts: (string | undefined)[]): string | undefined =>
  parts.filter((part) => part !== undefined).join(' ') || undefined;

function withoutGaps(facts: Structured): Structured {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as Structured;
}

/** Base64 of this many characters is no text that a model could use. */
const BASE64 = /[A-Za-z0-9+/]{4096,}={0,2}/g;

function bounded(facts: Structured): Structured {
  if (facts.data === undefined) return facts;
  const text = typeof facts.data === 'string' ? facts.data : JSON.stringify(facts.data);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_DATA_BYTES)
    return cut(facts, beginningOf(text), {
      bytes,
      rest: 'Read less at a time, if the platform has pages, filters or a choice of fields. A program gets it whole from POST /v1/actions. Do not repeat a call that changes something for the rest.',
    });
  // The broker keeps only the beginning of the result of a held call.
  if (facts.truncated && typeof facts.data === 'string')
    return cut(facts, facts.data, {
      bytes: facts.bytes,
      rest: 'The rest was not kept: read it from the platform, if it can be read there. Do not submit the call again for it.',
    });
  return facts;
}

function cut(
  facts: Structured,
  text: string,
  { bytes, rest }: { bytes: number | undefined; rest: string },
): Structured {
  const data = text.replace(BASE64, ({ length }) => `(${length} characters of base64 are left out)`);
  const detail = sentences(
    facts.detail,
    `data is only the beginning, as text, of an answer of ${bytes} bytes. ${rest}`,
  );
  return { ...facts, data, truncated: true, ...(bytes !== undefined && { bytes }), detail };
}

/** Truncated in bytes (a code unit takes at least one); a streaming decoder leaves out a partial character at the end. */
const beginningOf = (text: string): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    Buffer.from(text.slice(0, MAX_DATA_BYTES)).subarray(0, MAX_DATA_BYTES),
    { stream: true },
  );
