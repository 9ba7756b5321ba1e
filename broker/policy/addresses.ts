/**
 * Parses ids, and e-mail addresses in the plain subset of RFC 5322 that all parsers read alike. Anything else (comments, groups, routes, quoted local parts,
 * domain literals, non-ASCII addresses, encoded words that hide punctuation) is not accepted as an address: a general parser would accept it, but the
 * platform's parser might read it differently.
 */

/** `domain` is in lower case; `local` keeps its case (RFC 5321 §2.4). */
export type Address = { local: string; domain: string };

/** One member of an address list: its text, and its address; undefined when the text is not a plain address. */
export type Mailbox = { text: string; address: Address | undefined };

/** RFC 5322 §3.2.3 dot-atom, without `%` and `!`, which old relays treat as routes. */
const LOCAL = /^[A-Za-z0-9#$&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9#$&'*+/=?^_`{|}~-]+)*$/;
/** RFC 1035 §2.3.1. */
const DOMAIN = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/;
const PLAIN_NAME = /^[^()<>[\]:;@\\,"\p{Cc}\p{Cf}]*$/u;
const QUOTED_NAME = /^"(?:[^"\\@<>\p{Cc}\p{Cf}]|\\["\\])*"$/u;
/** RFC 2047 §2. */
const ENCODED_WORD = /=\?([A-Za-z0-9-]+)\?([BbQq])\?([!->@-~]*)\?=/g;
/** `*` is excluded: whoever writes one means a pattern, and patterns of ids are not supported. */
const ID = /^[^@*\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]{1,320}$/u;
/** Some parsers end a line at a vertical tab, a form feed, a separator (U+001C and on), U+0085, U+2028 or U+2029. */
const UNCLEAR = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/;
const RECIPIENT_HEADERS = new Set(['to', 'cc', 'bcc', 'resent-to', 'resent-cc', 'resent-bcc', 'apparently-to']);

/** Parses a comma-separated address list (RFC 5322 §3.4); empty members are skipped. */
export function readAddresses(text: string): Mailbox[] {
  return splitList(text)
    .map(trimBlanks)
    .filter((part) => part !== '')
    .map((part) => ({ text: part, address: readMailbox(part) }));
}

/** Parses an address such as `ann@x.example`; undefined for anything else. */
export function readAddress(text: string): Address | undefined {
  const at = text.indexOf('@');
  const local = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (at < 1 || local.length > 64 || domain.length > 253 || local.includes('=?')) return undefined;
  return LOCAL.test(local) && DOMAIN.test(domain) ? { local, domain: domain.toLowerCase() } : undefined;
}

/**
 * Validates an id that only a platform can interpret, such as a channel `C024BE91L` or an account `557058:f58131cb`: any text without `@` (which would make
 * it an address), `*` and invisible characters; undefined for anything else. Ids are compared, never interpreted.
 */
export function readId(text: string): string | undefined {
  return text === trimBlanks(text) && ID.test(text) ? text : undefined;
}

/** Splits a comma-separated list of ids, each still to be validated with `readId`; empty members are skipped. */
export function readIds(text: string): string[] {
  return text
    .split(',')
    .map(trimBlanks)
    .filter((part) => part !== '');
}

/**
 * Returns the recipients of an internet message given as base64url, as in Gmail's `raw`: those of every To, Cc, Bcc and Resent line. Undefined when its
 * header cannot be parsed unambiguously.
 */
export function readMessageRecipients(raw: string): Mailbox[] | undefined {
  return readMessage(raw)
    ?.filter(({ name }) => RECIPIENT_HEADERS.has(name))
    .flatMap(({ value }) => readAddresses(value));
}

/**
 * Returns the subject of such a message, with its encoded words (RFC 2047) decoded. Undefined when there is no subject, more than one, or a header that
 * cannot be parsed unambiguously.
 */
export function readMessageSubject(raw: string): string | undefined {
  const subjects = readMessage(raw)?.filter(({ name }) => name === 'subject') ?? [];
  const [subject] = subjects;
  if (subject === undefined || subjects.length > 1) return undefined;
  // Blanks between two encoded words are not part of the text (RFC 2047 §6.2).
  const text = trimBlanks(subject.value).replace(/(\?=)[ \t]+(?==\?)/g, '$1');
  return text.replace(ENCODED_WORD, (word, charset, encoding, part) => decodeWord(charset, encoding, part) ?? word);
}

/** Parses the header of a message given as base64url; undefined when it cannot be parsed. */
const readMessage = (raw: string) =>
  /^[A-Za-z0-9_-]*={0,2}$/.test(raw) ? readHeader(Buffer.from(raw, 'base64url')) : undefined;

/** Parses header lines up to the first empty line and joins folded lines (RFC 5322 §2.2). */
function readHeader(message: Uint8Array): { name: string; value: string }[] | undefined {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(message.subarray(0, headerEnd(message)));
  } catch {
    return undefined;
  }
  const fields: { name: string; value: string }[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (line === '') break;
    // Such a character, or a line of blanks only, ends the line or the header for some parsers and not for others.
    if (UNCLEAR.test(line) || line.trim() === '') return undefined;
    const last = fields.at(-1);
    if (/^[ \t]/.test(line)) {
      if (last === undefined) return undefined;
      last.value += line;
      continue;
    }
    const [, name, value] = /^([!-9;-~]+)[ \t]*:(.*)$/s.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    fields.push({ name: name.toLowerCase(), value });
  }
  return fields;
}

/** Returns the offset after the first empty line, with LF or CRLF line ends; the length of the message when there is none. */
function headerEnd(message: Uint8Array): number {
  for (let i = 1; i < message.length; i++) {
    if (message[i] === 10 && (message[i - 1] === 10 || (message[i - 1] === 13 && message[i - 2] === 10))) return i + 1;
  }
  return message.length;
}

/** Splits at commas outside of quotes. */
function splitList(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (quoted && character === '\\') i++;
    else if (character === '"') quoted = !quoted;
    else if (character === ',' && !quoted) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** RFC 5322 §3.4 mailbox: `address`, `<address>` or `name <address>`. */
function readMailbox(part: string): Address | undefined {
  if (!part.endsWith('>')) return readAddress(part);
  const open = part.indexOf('<');
  if (open < 0) return undefined;
  const name = trimBlanks(part.slice(0, open));
  return isPlainName(name) ? readAddress(part.slice(open + 1, -1)) : undefined;
}

/** Removes spaces and tabs only: no other white space is allowed around a plain address. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '');
}

function isPlainName(name: string): boolean {
  if (!PLAIN_NAME.test(name) && !QUOTED_NAME.test(name)) return false;
  if (!name.includes('=?')) return true;
  const decoded = name.replace(
    ENCODED_WORD,
    (_word, charset, encoding, text) => decodeWord(charset, encoding, text) ?? '@',
  );
  return !decoded.includes('=?') && PLAIN_NAME.test(decoded);
}

function decodeWord(charset: string, encoding: string, text: string): string | undefined {
  try {
    const bytes =
      encoding.toUpperCase() === 'B'
        ? Buffer.from(text, 'base64')
        : Buffer.from(
            text
              .replaceAll('_', ' ')
              .replace(/=([0-9A-Fa-f]{2})/g, (_escape, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
            'latin1',
          );
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
