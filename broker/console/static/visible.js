// Scripts in which joiners within a word select letter forms, as in Persian.
const JOINED = ['Arab', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh']
  .map((script) => `\\p{Script_Extensions=${script}}`)
  .join('');

// Contexts in which such characters are legitimate and hide nothing: within an emoji (variation selector, joiner of a family, keycap),
// and within words of those scripts.
const ORDINARY = [
  '(?<=\\p{Extended_Pictographic})\\ufe0f',
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})',
  `(?<=[${JOINED}])[\\u200c\\u200d](?=[${JOINED}])`,
].join('|');

// Control characters, bidirectional marks and invisible characters can make a text read as another one. Each is shown by its
// code point instead.
const UNSEEN = new RegExp(
  `(?=[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}\\u2800\\p{Default_Ignorable_Code_Point}])(?!${ORDINARY}).`,
  'gsu',
);

/** @param {string} character */
const byNumber = (character) => `⟦U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟧`;

/**
 * Makes a foreign text safe to display; line breaks are kept.
 *
 * @param {string} text
 */
export const visible = (text) =>
  String(text).replace(UNSEEN, (character) => (character === '\n' ? character : byNumber(character)));

/**
 * The same for a single line: a line break is shown by its code point, too.
 *
 * @param {string} text
 */
export const visibleLine = (text) => String(text).replace(UNSEEN, byNumber);

/**
 * Escapes all such characters in JSON: the same value when parsed, and safe to display.
 *
 * @param {string} json the output of `JSON.stringify`, indented or not
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

// Scripts whose letters can be confused with each other. Chinese, Japanese and Korean are normally mixed, also with
// Latin, and resemble no other script.
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Georgian', 'Hebrew', 'Arabic'].map(
  (name) => /** @type {[string, RegExp]} */ ([name, new RegExp(`\\p{Script=${name}}`, 'u')]),
);

/**
 * Returns the names of those scripts of which a text has letters.
 *
 * @param {string} text
 */
export const scriptsOf = (text) => SCRIPTS.filter(([, letters]) => letters.test(text)).map(([name]) => name);

const shortened = (/** @type {string} */ text) => visibleLine(text.length > 80 ? `${text.slice(0, 80)}…` : text);

// A letter or digit that is not Latin but looks like one: `ﬁ`, full-width and mathematical letters. Ordinals, fractions, marks
// and punctuation have compatibility forms, too, but are common in ordinary texts.
const isDisguise = (/** @type {string} */ character) => /[A-Za-z0-9]/.test(character.normalize('NFKC'));

/**
 * Describes suspicious letters of a text, in sentences: words in two scripts, letters that imitate Latin ones.
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
 * Describes what is suspicious about a recipient: the above, and a domain that imitates another.
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
