/** What is masked of an answer, and of which answers nothing can be: those are withheld (decisions, Masks). */
import type { Mask } from '../policy/mask.ts';
import { memberMask } from '../policy/mask-members.ts';
import { looksLikeJson, type MaskedText, type Masking, maskJson, maskValues } from './mask-json.ts';
import { PieceMasker, piecesOf } from './mask-lines.ts';

/** A mask, prepared for an answer. */
export function maskingOf({ members, values, isStrict }: Omit<Mask, 'rules'>, isToolResult = false): Masking {
  return { members: memberMask(members), values, isStrict, isToolResult };
}

/**
 * The text of an answer, masked.
 *
 * @param type `type/subtype`, in lower case
 * @param isJson it is JSON, of a type that says so
 * @returns undefined where it cannot be told what the text holds: members are masked, and it is no JSON; by a mask that is not strict, and it has
 *   such a member
 */
export function maskText(
  text: string,
  { type, isJson }: { type: string | undefined; isJson: boolean },
  masking: Masking,
): MaskedText | undefined {
  // Whatever its type says: some platforms let whoever asks choose that.
  const json = isJson || looksLikeJson(text) ? maskJson(text, masking) : undefined;
  if (json || isJson) return json;
  const pieces = piecesOf(type);
  if (pieces === undefined) return masking.members && masking.isStrict ? undefined : maskPlain(text, masking);
  const masker = new PieceMasker(pieces, masking);
  const begun = masker.push(text);
  return begun === undefined ? undefined : { text: begun + masker.end(), count: masker.count };
}

/** Text in which lines may be JSON, as of a log. Undefined: the others have a member that is masked, as a script with JSON in it (JSONP). */
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

/** Headers that say what a body holds: its length, its hash, a part of it. Of a body that was masked they say what was there. */
const OF_BODY =
  /^(?:content-length|content-md5|content-range|accept-ranges|(?:content-|repr-)?digest|etag)$|checksum|crc64|stored-content-length|(?:^|-)hash$/;

/**
 * The headers of an answer that a mask is about, without those that tell what was masked. Names in lower case. `hasAny`: whether anything was
 * masked in it, or may have been. Where nothing was by a mask that is not strict, clients keep what they ask again by, such as an ETag.
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
