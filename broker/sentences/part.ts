/** A sentence that says what a call does, as data: each surface lays its parts out, and none has to escape anything. */

/**
 * `text`: words of a template or of the broker. `value`: from the request, already readable: cut, and what cannot be seen shown by
 * its number. `strong`: what the call acts on. `quoted`: stands between quotation marks, because it is free text. `note`: what is
 * not as it seems, or what was cut. `amount`: an amount of money whose currency and unit were read, such as `1,234.50 EUR`.
 */
export type Part = { text: string } | { value: string; strong?: true; quoted?: true; note?: string; amount?: true };

/** `template`: a hash of the template that it was made from; null: made from method and path alone. */
export type Sentence = { parts: readonly Part[]; template: string | null };

/** The version of this form, as it is stored. */
export const SENTENCE_FORMAT = 1;

/** No sentence has more characters than this, however large the request is. */
export const MAX_SENTENCE = 4_000;

/** The sentence as one line of plain text, for terminals, chats and mail. A value that is not one word stands in “…”. */
export function plainSentence({ parts }: Pick<Sentence, 'parts'>): string {
  return parts.map(plainPart).join('');
}

function plainPart(part: Part): string {
  if ('text' in part) return part.text;
  const value = part.quoted ? `“${part.value}”` : part.value;
  return part.note === undefined ? value : `${value} (${part.note})`;
}
