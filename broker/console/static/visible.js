// Scripts in which joiners within a word choose the forms of letters, as in Persian.
const JOINED = ['Arab', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh']
  .map((script) => `\\p{Script_Extensions=${script}}`)
  .join('');

// Where such characters belong, and can hide nothing: within an emoji (its variation selector, the joiner of a family, a keycap),
// and within words of those scripts.
const ORDINARY = [
  '(?<=\\p{Extended_Pictographic})\\ufe0f',
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})',
  `(?<=[${JOINED}])[\\u200c\\u200d](?=[${JOINED}])`,
].join('|');

// Controls, bidirectional marks and characters that show nothing can make a text read as another one. Each is shown by its
// number instead.
const UNSEEN = new RegExp(
  `(?=[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}\\u2800\\p{Default_Ignorable_Code_Point}])(?!${ORDINARY}).`,
  'gsu',
);

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

/**
 * JSON in which every such character is escaped: the same value, for whoever parses it, and safe to look at.
 *
 * @param {string} json as `JSON.stringify` writes it, indented or not
 */
export const visibleJson = (json) =>
  json.replace(UNSEEN, (characters) =>
    characters === '\n'
      ? characters
      : Array.from(
          { length: characters.length },
          (_, i) => `\\u${characters.charCodeAt(i).toString(16).padStart(4, '0')}`,
        ).join(''),
  );

// Writing systems whose letters can be taken for one another's. Chinese, Japanese and Korean are written together, and with
// Latin, and look like nothing else.
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Georgian', 'Hebrew', 'Arabic'].map(
  (name) => /** @type {[string, RegExp]} */ ([name, new RegExp(`\\p{Script=${name}}`, 'u')]),
);

/**
 * The names of those writing systems that a text has letters of.
 *
 * @param {string} text
 */
export const scriptsOf = (text) => SCRIPTS.filter(([, letters]) => letters.test(text)).map(([name]) => name);

const shortened = (/** @type {string} */ text) => visibleLine(text.length > 80 ? `${text.slice(0, 80)}…` : text);

// A letter or digit that is not Latin, though it looks like one: `ﬁ`, full-width and mathematical letters. Ordinals, fractions, marks
// and punctuation have plain forms, too, and stand in ordinary texts.
const isDisguise = (/** @type {string} */ character) => /[A-Za-z0-9]/.test(character.normalize('NFKC'));

/**
 * What is odd about the letters of a text, as sentences: words of two alphabets, letters in disguise.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function oddities(text) {
  const found = [];
  for (const [word] of text.matchAll(/[\p{L}\p{M}]+/gu)) {
    const names = scriptsOf(word);
    if (names.length > 1) {
      found.push(`“${shortened(word)}” mixes ${names.join(' and ')} letters.`);
      break;
    }
  }
  if ([...text.matchAll(/(?![ªº])[\p{L}\p{Nd}\p{Nl}](?<![\x00-\x7f])/gu)].some(([character]) => isDisguise(character)))
    found.push(`It contains look-alike characters; in plain ones it is “${shortened(text.normalize('NFKC'))}”.`);
  return found;
}

/**
 * What is odd about somebody who receives something: the above, and a domain that is not what it looks like.
 *
 * @param {string} text
 */
export function oddRecipient(text) {
  const domain = text.slice(text.lastIndexOf('@') + 1);
  const found = oddities(text);
  if (text.includes('@') && /[^\x20-\x7e]/.test(domain)) {
    const ascii = URL.canParse(`http://${domain}`) ? new URL(`http://${domain}`).hostname : undefined;
    found.push(ascii ? `Its domain is ${ascii}.` : 'Its domain is not valid.');
  }
  return found;
}
