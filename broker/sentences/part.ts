/** A sentence that describes a call, as data: each surface renders the parts, and no text needs escaping. */

/**
 * `text`: words of a template or of the broker. `value`: from the request, already readable: truncated, and invisible characters shown by their numbers.
 * `strong`: the object of the call. `quoted`: free text, shown between quotation marks. `note`: a remark that the value is misleading or truncated. `amount`:
 * an amount of money whose currency and unit were read, such as `1,234.50 EUR`.
 */
export type Part = { text: string } | { value: string; strong?: true; quoted?: true; note?: string; amount?: true };

/** `template`: a hash of the template of the sentence; null: generated from method and path alone. */
export type Sentence = { parts: readonly Part[]; template: string | null };

/** The version of the stored form. */
export const SENTENCE_FORMAT = 1;

/** The limit of characters of a sentence, however large the request is. */
export const MAX_SENTENCE = 4_000;

/** Returns the sentence as one line of plain text, for terminals, chats and mail. A value of more than one word stands in “…”. */
export function plainSentence({ parts }: Pick<Sentence, 'parts'>): string {
  return parts.map(plainPart).join('');
}

function plainPart(part: Part): string {
  if ('text' in part) return part.text;
  const value = part.quoted ? `“${part.value}”` : part.value;
  return part.note === undefined ? value : `${value} (${part.note})`;
}
