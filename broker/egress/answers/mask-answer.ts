/** Masks answers, and withholds those that cannot be masked (docs/decisions/28-masks.md). */
import type { Mask } from '../../policy/masks/mask.ts';
import { memberMask } from '../../policy/masks/members.ts';
import { looksLikeJson, type MaskedText, type Masking, maskJson, maskValues } from './mask-json.ts';
import { PieceMasker, piecesOf } from './mask-lines.ts';

/** Prepares a mask for an answer. */
export function maskingOf({ members, values, isStrict }: Omit<Mask, 'rules'>, isToolResult = false): Masking {
  return { members: memberMask(members), values, isStrict, isToolResult };
}

/**
 * Masks the text of an answer.
 *
 * @param type `type/subtype`, in lower case
 * @param isJson whether it is JSON with a JSON type
 * @returns undefined when members are to be masked and the text is not JSON; with a non-strict mask only when it also contains such a
 * member
 */
export function maskText(
  text: string,
  { type, isJson }: { type: string | undefined; isJson: boolean },
  masking: Masking,
): MaskedText | undefined {
  // JSON is masked whatever its type, because some platforms let the caller choose the type.
  const json = isJson || looksLikeJson(text) ? maskJson(text, masking) : undefined;
  if (json || isJson) return json;
  const pieces = piecesOf(type);
  if (pieces === undefined) return masking.members && masking.isStrict ? undefined : maskPlain(text, masking);
  const masker = new PieceMasker(pieces, masking);
  const begun = masker.push(text);
  return begun === undefined ? undefined : { text: begun + masker.end(), count: masker.count };
}

/**
 * Masks plain text in which single lines may be JSON, as in a log. Undefined when another line contains a masked member, such as a script
 * with JSON in it (JSONP).
 */
function maskPlain(text: string, masking: Masking): MaskedText | undefined {
  let count = 0;
  const others: string[] = [];
  const lines = text.split('\n').map((line) => {
    const json = looksLikeJson(line) ? maskJson(line, masking) : undefined;
    if (json === undefined) others.push(line);
    count += json?.count ?? 0;
    return json?.text ?? line;
  });
  if (masking.members?.isIn(others.join('\n'))) return undefined;
  const rest = maskValues(lines.join('\n'), masking.values);
  return { text: rest.text, count: count + rest.count };
}

/** Headers that describe a body: length, hash, range. After masking they would reveal the original. */
const OF_BODY =
  /^(?:content-length|content-md5|content-range|accept-ranges|(?:content-|repr-)?digest|etag)$|checksum|crc64|stored-content-length|(?:^|-)hash$/;

/**
 * Returns the headers of a masked answer without those that reveal what was masked. Names in lower case. `hasAny`: whether anything was, or
 * may have been, masked. When a non-strict mask changed nothing, clients keep validators such as an ETag.
 */
export function maskedHeaders<Value extends string | string[]>(
  headers: Readonly<Record<string, Value>>,
  { values, isStrict }: Pick<Masking, 'values' | 'isStrict'>,
  hasAny: boolean,
): Record<string, Value> {
  const isOfBody = (name: string) => (isStrict || hasAny) && OF_BODY.test(name);
  const kept = Object.entries(headers).filter(
    ([name, value]) => !isOfBody(name) && [value].flat().every((one) => maskValues(one, values).count === 0),
  );
  return Object.fromEntries(kept);
}
