/**
 * Kinds of values that are recognised in text by their form: personal data, and keys of well-known services. Each search is linear in the text. Encoded
 * (base64, compressed) or split values are not found.
 */

export const PERSONAL_KINDS = ['email', 'phone', 'card', 'iban', 'national_id'] as const;
export type PersonalKind = (typeof PERSONAL_KINDS)[number];

export const VALUE_KINDS = [...PERSONAL_KINDS, 'api_key'] as const;
export type ValueKind = (typeof VALUE_KINDS)[number];

/** Offsets of a value, in UTF-16 code units. */
export type ValueSpan = { from: number; to: number };

/** Searches for the `@` first, also as it is escaped in a URL: beginning the match at each possible local part would cost 64 times as much. */
const EMAIL = /(?:@(?<=[\p{L}\p{N}._%+'-]@)|%40(?<=[\p{L}\p{N}._%+'-]%40))(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}/gu;
const LOCAL_PART = /[\p{L}\p{N}._%+'-]/u;
const MAX_LOCAL_PART_LENGTH = 64;
/** The letter of an escape, as in a JSON text, is not part of a value that begins after it. */
const BEHIND_ESCAPE = String.raw`(?<=\\[nrtbf])`;
const ESCAPE = /\\[nrtbf]$/;
const begin = (border: string): string => `(?:${border}|${BEHIND_ESCAPE})`;
/** Blanks and hyphens between groups, also those at which no line is broken: address books and web pages write numbers with these. */
const BLANK = String.raw` \u00a0\u2007\u2009\u202f`;
const HYPHEN = String.raw`\-\u2010-\u2013`;
/** The country codes of ITU-T E.164. */
const COUNTRY =
  '(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|(?:2[1-689]|3[578]|42|5[09]|6[7-9]|8[05789]|9[679])[0-9])';
/** After `00` a blank, a bracket or a hyphen must follow the country: plain digits that begin with `00` are numbers of articles and accounts, too. */
const PHONE = new RegExp(
  `${begin(String.raw`(?<![\w+])`)}(?:${[
    String.raw`\+[1-9](?:[${BLANK}().${HYPHEN}]{0,2}\d){7,14}`,
    String.raw`00[${BLANK}]?${COUNTRY}(?=[${BLANK}(${HYPHEN}])(?:[${BLANK}().${HYPHEN}]{0,2}\d){7,12}`,
  ].join('|')})(?!d)`,
  'g',
);
/** Digits in groups; a card number may begin and end at each group, as other numbers may stand beside it. */
const CARD = new RegExp(
  `${String.raw`(?<!\d\.?)`}(?:${[
    String.raw`\d(?:[${BLANK}${HYPHEN}]?\d){12,}`,
    // Dots only between the groups of a card: other numbers contain dots, too.
    String.raw`\d{4}(?:\.\d{4}){3}`,
    String.raw`3\d{3}\.\d{6}\.\d{5}`,
  ].join('|')})${String.raw`(?!\.?\d)`}`,
  'g',
);
const IBAN_BEGIN = new RegExp(String.raw`${begin(String.raw`(?<!\w)`)}[A-Z]{2}\d{2}(?=[${BLANK}]?[A-Z0-9])`, 'gi');
const IBAN = new RegExp(String.raw`^[A-Z]{2}\d{2}(?:[${BLANK}]?[A-Z0-9]){11,30}(?![A-Z0-9])`, 'i');
/** As an IBAN is written: without blanks, or in groups of four. */
const IBAN_GROUPS = new RegExp(String.raw`^(?:\w+|\w{4}(?:[${BLANK}]\w{4})*(?:[${BLANK}]\w{1,4})?)$`);
const BLANKS = new RegExp(`[${BLANK}]`, 'g');
const LAST_BLANK = new RegExp(`[${BLANK}][^${BLANK}]*$`);
const MAX_IBAN_LENGTH = 64;
const US_SSN = new RegExp(
  String.raw`(?<![\d${HYPHEN}])(?!000|666|9)\d{3}[${HYPHEN}](?!00)\d{2}[${HYPHEN}](?!0000)\d{4}(?![\d${HYPHEN}])`,
  'g',
);

/** Keys of services with a recognisable prefix, tokens in the form of a JWT, and private keys. */
const API_KEY = new RegExp(
  `${begin(String.raw`(?<!\w)`)}(?:${[
    'gh[pousr]_[A-Za-z0-9]{20,255}',
    'github_pat_[A-Za-z0-9_]{20,255}',
    String.raw`gl(?:pat|ptt|dt|rt|soat)-[\w-]{16,255}`,
    String.raw`xox[a-z]-[\w-]{10,255}`,
    String.raw`xapp-[\w-]{10,255}`,
    '[sr]k_(?:live|test)_[A-Za-z0-9]{10,255}',
    'sk-[A-Za-z0-9_-]{20,255}',
    String.raw`(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
    String.raw`AIza[\w-]{35}`,
    String.raw`ya29\.[\w-]{20,1024}`,
    String.raw`SG\.[\w-]{16,64}\.[\w-]{16,64}`,
    'npm_[A-Za-z0-9]{30,255}',
    'hf_[A-Za-z0-9]{30,255}',
    'ntn_[A-Za-z0-9]{20,255}',
    'lin_api_[A-Za-z0-9]{20,255}',
    String.raw`(?<!-)eyJ[\w-]{10,4096}\.eyJ[\w-]{10,8192}\.[\w-]{0,4096}`,
    String.raw`-----BEGIN (?:[A-Z]{1,20} ){0,2}PRIVATE KEY-----(?:\s{0,4}[A-Za-z-]{1,40}: ?[^\r\n\\]{0,200}(?:[\r\n]|\\[rn])){0,5}[A-Za-z0-9+/=\s\\]{0,16384}(?:-----END (?:[A-Z]{1,20} ){0,2}PRIVATE KEY-----)?`,
  ].join('|')})`,
  'g',
);

/** ISO/IEC 7812-1, annex B. */
function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    let digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    if (i % 2 === 1) digit = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return sum % 10 === 0;
}

/** Lengths of the IBANs of each country (ISO 13616, IBAN registry). */
const IBAN_LENGTHS = new Map(
  (
    [
      [15, 'NO'],
      [16, 'BE'],
      [18, 'DK FI FK FO GL NL SD'],
      [19, 'MK SI'],
      [20, 'AT BA EE KZ LT LU MN XK'],
      [21, 'CH HR LI LV'],
      [22, 'BG BH CR DE GB GE IE ME RS VA'],
      [23, 'AE GI IL IQ OM SO TL'],
      [24, 'AD CZ ES MD PK RO SA SE SK TN VG'],
      [25, 'LY PT ST'],
      [26, 'IS TR'],
      [27, 'BI DJ FR GR IT MC MR SM'],
      [28, 'AL AZ BY CY DO GT HN HU LB NI PL SV'],
      [29, 'BR EG PS QA UA'],
      [30, 'JO KW MU YE'],
      [31, 'MT SC'],
      [32, 'LC'],
      [33, 'RU'],
    ] as const
  ).flatMap(([length, countries]) => countries.split(' ').map((country) => [country, length] as const)),
);

/**
 * ISO 13616: the rearranged number is 1 modulo 97. With small letters, which words and hashes have, too, only in the usual groups and with the length of its
 * country.
 */
function isIban(written: string): boolean {
  const text = written.replace(BLANKS, '').toUpperCase();
  if (text.length < 15 || text.length > 34) return false;
  if (/[a-z]/.test(written) && !(IBAN_GROUPS.test(written) && IBAN_LENGTHS.get(text.slice(0, 2)) === text.length))
    return false;
  let remainder = 0;
  for (const character of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
  }
  return remainder === 1;
}

/** Whether digits are a card number (ISO/IEC 7812-1) with the first digit of a card issuer. */
const isCard = (digits: string): boolean => digits.length >= 13 && /^[2-6]/.test(digits) && passesLuhn(digits);
const MAX_CARD_LENGTH = 19;

/** Yields the card numbers in groups of digits. */
function* cardsIn(groups: string, at: number): Generator<ValueSpan, void> {
  const parts = [...groups.matchAll(/\d+/g)];
  for (let first = 0; first < parts.length; first++) {
    let digits = '';
    for (let last = first; last < parts.length; last++) {
      const part = parts[last] as RegExpExecArray;
      digits += part[0];
      if (digits.length > MAX_CARD_LENGTH) break;
      if (!isCard(digits)) continue;
      yield { from: at + (parts[first] as RegExpExecArray).index, to: at + part.index + part[0].length };
      first = last;
      break;
    }
  }
}

/** Quick check for kinds with consecutive digits, which most texts lack. */
const hasDigits = (text: string): boolean => /\d{2}/.test(text);

/** Yields the IBAN that begins at an offset: a match may extend into the following words, so shorter ones are tried, too. */
function* ibanIn(_: string, at: number, text: string): Generator<ValueSpan, void> {
  const [match = ''] = IBAN.exec(text.slice(at, at + MAX_IBAN_LENGTH)) ?? [];
  for (let to = match.length; to > 0; to = match.slice(0, to).search(LAST_BLANK)) {
    if (!isIban(match.slice(0, to))) continue;
    yield { from: at, to: at + to };
    return;
  }
}

type Search = {
  pattern: RegExp;
  /** Quick check before the pattern is run. */
  mayBeIn(text: string): boolean;
  /** Returns the values in a match; absent: the whole match is the value. */
  within?(match: string, at: number, text: string): Iterable<ValueSpan>;
};

const SEARCHES: Readonly<Record<ValueKind, Search>> = {
  email: {
    pattern: EMAIL,
    mayBeIn: (text) => text.includes('@') || text.includes('%40'),
    within: (match, at, text) => {
      let from = at;
      while (from > 0 && at - from < MAX_LOCAL_PART_LENGTH && LOCAL_PART.test(text[from - 1] ?? '')) from--;
      if (from > 0 && ESCAPE.test(text.slice(from - 1, from + 1))) from++;
      return [{ from, to: at + match.length }];
    },
  },
  phone: { pattern: PHONE, mayBeIn: (text) => text.includes('+') || text.includes('00') },
  card: { pattern: CARD, mayBeIn: hasDigits, within: cardsIn },
  iban: { pattern: IBAN_BEGIN, mayBeIn: hasDigits, within: ibanIn },
  national_id: { pattern: US_SSN, mayBeIn: hasDigits },
  api_key: { pattern: API_KEY, mayBeIn: () => true },
};

/** Yields the values of a kind in a text, in order. */
export function* valuesOf(kind: ValueKind, text: string): Generator<ValueSpan, void> {
  const { pattern, mayBeIn, within } = SEARCHES[kind];
  if (!mayBeIn(text)) return;
  for (const { 0: match, index } of text.matchAll(pattern))
    if (within) yield* within(match, index, text);
    else yield { from: index, to: index + match.length };
}

/** Whether a text contains a value of a kind. */
export const hasValueOf = (kind: ValueKind, text: string): boolean => !valuesOf(kind, text).next().done;
