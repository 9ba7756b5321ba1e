// Controls, bidirectional marks and characters that show nothing can make a text read as another one. Each is shown by its
// number instead. An emoji keeps its variation selector: it cannot hide anything there.
const UNSEEN =
  /(?<!\p{Extended_Pictographic})\ufe0f|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u2800]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}/gu;

/** @param {string} character */
const byNumber = (character) => `⟦U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟧`;

/**
 * A text of somebody else's, safe to look at; its line breaks are kept.
 *
 * @param {string} text
 */
export const visible = (text) =>
  String(text).replace(UNSEEN, (character) => (character === '\n' ? character : byNumber(character)));

/**
 * The same for what stands on one line: a line break is shown by number, too.
 *
 * @param {string} text
 */
export const visibleLine = (text) => String(text).replace(UNSEEN, byNumber);
