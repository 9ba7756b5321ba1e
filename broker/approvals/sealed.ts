/** Seals and opens the request, sentence and result of a held call, bound to the approval's row. */
import { memberTexts } from '../../json/member-texts.ts';
import { maskedIn } from '../audit/answer-notes.ts';
import type { OutcomeOf, UpstreamAnswer } from '../audit/outcome.ts';
import type { Broker } from '../broker.ts';
import type { RawAnswer } from '../egress/answers/answer.ts';
import type { Basis, JsonObject } from '../policy/facts.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';

type Ref = Pick<ApprovalTable, 'organisation_id' | 'id'>;

const placeOf = (
  { organisation_id: organisationId, id: rowId }: Ref,
  column: 'action' | 'result' | 'sentence' | 'basis' | 'asked',
) => ({
  table: 'approvals' as const,
  column,
  organisationId,
  rowId,
});

/** Seals the exact request of a held call. */
export function sealRequest({ vault }: Pick<Broker, 'vault'>, ref: Ref, request: JsonObject): Buffer {
  return vault.seal(placeOf(ref, 'action'), JSON.stringify(request));
}

/** Opens the exact request. Throws SealError when the stored value was modified or belongs to another row. */
export function openRequest(
  { vault }: Pick<Broker, 'vault'>,
  approval: Ref & Pick<ApprovalTable, 'action'>,
): JsonObject {
  return readStored(
    StoredObject,
    vault.open(placeOf(approval, 'action'), approval.action).toString('utf8'),
    'held call',
  );
}

/** Seals the agent's original request of a corrected call. */
export const sealAsked = ({ vault }: Pick<Broker, 'vault'>, ref: Ref, request: JsonObject): Buffer =>
  vault.seal(placeOf(ref, 'asked'), JSON.stringify(request));

/** Opens the agent's original request. Throws SealError when the stored value was modified or belongs to another row. */
export const openAsked = ({ vault }: Pick<Broker, 'vault'>, ref: Ref, sealed: Uint8Array): JsonObject =>
  readStored(StoredObject, vault.open(placeOf(ref, 'asked'), sealed).toString('utf8'), 'held call');

/** Seals the sentence that describes a held call; it quotes the request, so it is secret too. */
export function sealSentence({ vault }: Pick<Broker, 'vault'>, ref: Ref, text: string): Buffer {
  return vault.seal(placeOf(ref, 'sentence'), text);
}

/** Throws SealError when the stored value was modified or belongs to another row. */
export function openSentence({ vault }: Pick<Broker, 'vault'>, ref: Ref, sealed: Uint8Array): string {
  return vault.open(placeOf(ref, 'sentence'), sealed).toString('utf8');
}

/** No standing approval can be made from a longer call. */
const MAX_BASIS_BYTES = 256 * 1024;

/** Seals the facts that decided a held call, from which a standing approval can be made; null when they are too long. */
export function sealBasis({ vault }: Pick<Broker, 'vault'>, ref: Ref, basis: Basis): Buffer | null {
  const text = JSON.stringify(basis);
  return text.length > MAX_BASIS_BYTES ? null : vault.seal(placeOf(ref, 'basis'), text);
}

/** Throws SealError when the stored value was modified or belongs to another row. */
export const openBasis = ({ vault }: Pick<Broker, 'vault'>, ref: Ref, sealed: Uint8Array): Basis =>
  readStored(StoredObject, vault.open(placeOf(ref, 'basis'), sealed).toString('utf8'), 'held call') as unknown as Basis;

/** Limit of an upstream's response in an approval's row, in bytes of JSON text. */
export const MAX_RESULT_BYTES = 256 * 1024;

/** The default media type of an answer, which is not stored. */
const JSON_TYPE = 'application/json';

const RAW = '{"raw":';

/** Returns the result as an agent is shown it, without the first member, which is kept for raw requests only. */
export function shownResult(result: string): string {
  const raw = result.startsWith(RAW) ? memberTexts(result)?.get('raw') : undefined;
  return raw === undefined ? result : `{${result.slice(RAW.length + raw.length + 1)}`;
}

/**
 * Seals the result of a replay: JSON text `{status, data, headers, masked}`. Beyond MAX_RESULT_BYTES the data is truncated to the
 * beginning of its text, with `truncated` and the full size.
 */
export function sealResult({ vault }: Pick<Broker, 'vault'>, ref: Ref, outcome: OutcomeOf<'answered'>): Buffer {
  const { upstreamStatus, dataJson, encoding, headers, contentType, location, followed, redacted, raw } = outcome;
  const text = Buffer.from(dataJson);
  const whole = text.length <= MAX_RESULT_BYTES;
  const notes = {
    encoding,
    headers,
    content_type: contentType === JSON_TYPE ? undefined : contentType,
    location,
    followed: followed?.host,
    redacted: redacted || undefined,
    masked: maskedIn(outcome),
    ...(!whole && { truncated: true, bytes: text.length }),
  };
  const data = whole ? dataJson : JSON.stringify(truncated(text));
  const beginning = raw ? `${RAW}${rawText(raw)},` : '{';
  // `data` is JSON text already, so that numbers of an upstream keep their digits; members that are undefined are left out.
  const rest = JSON.stringify(notes).slice(1);
  const end = rest === '}' ? rest : `,${rest}`;
  return vault.seal(placeOf(ref, 'result'), `${beginning}"status":${upstreamStatus},"data":${data}${end}`);
}

const rawText = ({ headers, isText, bytes, maskedBy }: RawAnswer): string =>
  JSON.stringify({ headers, isText, bytes: bytes?.toString('base64'), masked_by: maskedBy });

/** Truncates UTF-8 without a partial character at the end. */
function truncated(text: Buffer): string {
  return new TextDecoder().decode(text.subarray(0, MAX_RESULT_BYTES), { stream: true });
}

/** Opens the JSON text `{status, data}` of a replayed call; undefined when there is none. */
export function openResult(
  { vault }: Pick<Broker, 'vault'>,
  approval: Ref & Pick<ApprovalTable, 'result'>,
): string | undefined {
  return approval.result === null
    ? undefined
    : vault.open(placeOf(approval, 'result'), approval.result).toString('utf8');
}

/** Summarises a response: status, type, size, and whether its body reports an error although its status does not. Never includes content. */
export function summarise({ upstreamStatus, contentType, bytes, failed }: UpstreamAnswer): string {
  const parts = [`status ${upstreamStatus}`, contentType ?? 'no content type', `${bytes} bytes`];
  return [...parts, ...(failed ? [FAILED] : [])].join(', ');
}

const FAILED = 'with an error in its body';

/** Whether a summary reports such an error. The broker appends these words last, so nothing of the platform can imitate them. */
export const summarisesFailure = (summary: string): boolean => summary.endsWith(` bytes, ${FAILED}`);

/** Returns in what way a summary reports that the platform did not do what was requested; undefined: it does not report that. */
export function failureIn(summary: string): string | undefined {
  if (summarisesFailure(summary)) return FAILED;
  const status = Number(/^status (\d+),/.exec(summary)?.[1] ?? 200);
  // 304 answers a conditional GET.
  return (status >= 200 && status < 300) || status === 304 ? undefined : `with status ${status}`;
}
