/**
 * Searches a body, piece by piece, for a field that some servers take for another method than the judged one (Rack, Symfony, Laravel), and
 * for fields that the platform accepts from no agent (`refused_parameters`). Decodes field names in every way a server may, also in a form
 * that is not judged because servers read it differently. Linear in the body.
 */
import { namesMethod, refusedParameter } from '../policy/endpoint.ts';
import { isListed, type NameList } from '../policy/names.ts';
import { JsonSearch, namesMethodSentence } from './method-json.ts';
import { readField } from './parse-form.ts';
import { boundaryOf } from './parse-multipart.ts';

/** Both return the name of the field once it is found. */
export type MethodSearch = {
  push(piece: Uint8Array): string | undefined;
  end(): string | undefined;
};

/** Longer than any client's field names. */
const MAX_NAME_LENGTH = 16 * 1024;
const FORM = 'application/x-www-form-urlencoded';

/** The type by which some server reads a body: Rack takes a POST without a type for a form (`Rack::Request#form_data?`). */
export const typeAsRead = (method: string, type = ''): string => type || (method === 'POST' ? FORM : '');

/** PHP ends the media type at a blank or a comma (`sapi_read_post_data`), Rack at a comma. */
const essenceOf = (type: string): string =>
  type
    .trim()
    .toLowerCase()
    .split(/[\s;,]/, 1)[0] ?? '';

/** Whether some server takes a body of this type for a form. */
export const isTakenForForm = (type: string): boolean =>
  essenceOf(type) === FORM || essenceOf(type).startsWith('multipart/');

/** Whether some server takes a body of this type for JSON: Laravel does when the type contains that word (`isJson`). */
export const isTakenForJson = (type: string): boolean => /json/i.test(type);

/**
 * Returns the search for a body of this `Content-Type`; undefined when no server looks for a method in it.
 *
 * @param refused further field names to find
 */
export function methodSearch(type: string, refused?: NameList): MethodSearch | undefined {
  const searches: MethodSearch[] = [];
  if (essenceOf(type) === FORM) searches.push(new FormSearch(refused));
  // With several boundaries, or an unusual one, readers choose differently.
  else if (isTakenForForm(type)) searches.push(new PartsSearch(boundaryOf(type), refused));
  if (isTakenForJson(type)) searches.push(new JsonSearch(refused));
  const [first, second] = searches;
  if (first === undefined || second === undefined) return first;
  return { push: (piece) => first.push(piece) ?? second.push(piece), end: () => first.end() ?? second.end() };
}

const SLICE = 16 * 1024;

/** Returns the name of such a field in a whole body. Yields between slices, which take some milliseconds at most. */
export function* methodField(type: string, bytes: Buffer, refused?: NameList): Generator<void, string | undefined> {
  const search = methodSearch(type, refused);
  if (search === undefined) return undefined;
  for (let at = 0; at < bytes.length; at += SLICE) {
    const found = search.push(bytes.subarray(at, at + SLICE));
    if (found !== undefined) return found;
    yield;
  }
  return search.end();
}

const isForbiddenName = (name: string, refused: NameList | undefined): boolean =>
  namesMethod(name) || (refused !== undefined && isListed(refused, name));

/** Whether a found name is refused by the platform without naming a method. */
export const isRefusedName = (name: string, refused: NameList | undefined): boolean =>
  refused !== undefined && !namesMethod(name) && isListed(refused, name);

/** The error text for a found name. */
export const whyNotSent = (name: string, refused?: NameList): string =>
  isRefusedName(name, refused) ? refusedParameter('body', name) : namesMethodSentence(name);

const NAME_END = /[=&;]/g;
/** Rack 2 also ends a field at a semicolon. */
const FIELD_END = /[&;]/g;

/** `application/x-www-form-urlencoded`. */
class FormSearch implements MethodSearch {
  readonly #refused: NameList | undefined;
  /** The part of a name read so far; undefined within a value. */
  #name: string | undefined = '';

  constructor(refused: NameList | undefined) {
    this.#refused = refused;
  }

  push(piece: Uint8Array): string | undefined {
    const text = latin1(piece);
    for (let at = 0; at < text.length; ) {
      const end = indexOf(this.#name === undefined ? FIELD_END : NAME_END, text, at);
      const rest = text.slice(at, end ?? text.length);
      if (this.#name !== undefined && this.#name.length < MAX_NAME_LENGTH) this.#name += rest;
      if (end === undefined) return undefined;
      const found = this.end();
      if (found !== undefined) return found;
      this.#name = text[end] === '=' ? undefined : '';
      at = end + 1;
    }
    return undefined;
  }

  end(): string | undefined {
    if (this.#name === undefined || (!this.#refused && !MAY_NAME.test(this.#name))) return undefined;
    const name = ESCAPED.test(this.#name) ? fieldName(this.#name) : this.#name;
    return isForbiddenName(name, this.#refused) ? name : undefined;
  }
}

/**
 * Matches names that have the letters of `method` in order, as all method fields do; each letter may be escaped, or a character that folds
 * to it.
 */
const MAY_NAME = new RegExp(
  `^${Array.from('method', (letter) => `[^${letter}%\\x80-\\xff]*(?:[${letter}%]|[\\x80-\\xff]{1,2})`).join('')}`,
  'i',
);
const ESCAPED = /[%+\x80-\xff]/;

/** ASP.NET also decodes `%u004d` (`HttpUtility.UrlDecode`). */
const fieldName = (text: string): string =>
  ([...readField(utf8(text)).keys()][0] ?? '').replaceAll(/%u([0-9a-f]{4})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );

/**
 * The end of a part's head, or its `name` parameter (RFC 7578 section 4.2); `name*` as in RFC 8187. Lines may be folded, or end without CR.
 */
const HEAD_TOKEN = /\r?\n\r?\n|;(?:[^\S\n]|\n[ \t])*name(\*?)(?:[^\S\n]|\n[ \t])*=(?:[^\S\n]|\n[ \t])*/gi;
/** The beginning of such a parameter, or of the end of a head, at the end of a piece. */
const PARTIAL_TOKEN = /(?:;\s*(?:n|na|nam|name\*?\s*=?\s*)?|\r?\n\r?)$/i;
/** Longer than any real parameter. */
const MAX_PARTIAL = 64 * 1024;
const VALUE = /"((?:[^"\\]|\\.){0,16384})|[^;\s]{1,16384}/sy;

/** Searches multipart bodies. Names are searched from each boundary to the next blank line; without a known boundary, everywhere. */
class PartsSearch implements MethodSearch {
  readonly #boundary: string | undefined;
  readonly #refused: NameList | undefined;
  /** Text that was not searched yet. */
  #text = '';
  #inHead: boolean;

  constructor(boundary: string | undefined, refused: NameList | undefined) {
    this.#refused = refused;
    this.#boundary = boundary === undefined ? undefined : `--${boundary}`;
    this.#inHead = boundary === undefined;
  }

  push(piece: Uint8Array): string | undefined {
    this.#text += latin1(piece);
    return this.#look(false);
  }

  end(): string | undefined {
    return this.#look(true);
  }

  /** Keeps text that may continue in the next piece, unless this is the end. */
  #look(isEnd: boolean): string | undefined {
    const text = this.#text;
    let at = 0;
    for (;;) {
      if (!this.#inHead && this.#boundary !== undefined) {
        const found = text.indexOf(this.#boundary, at);
        if (found < 0) {
          at = Math.max(at, text.length - this.#boundary.length + 1);
          break;
        }
        at = found + this.#boundary.length;
        this.#inHead = true;
      }
      HEAD_TOKEN.lastIndex = at;
      const token = HEAD_TOKEN.exec(text);
      if (token === null) {
        at = Math.max(at, PARTIAL_TOKEN.exec(text)?.index ?? text.length);
        break;
      }
      const next = token.index + token[0].length;
      if (token[1] === undefined) this.#inHead = this.#boundary === undefined;
      else {
        VALUE.lastIndex = next;
        const [plain = '', quoted] = VALUE.exec(text) ?? [];
        // The last character may be a backslash that escapes the next one.
        if (!isEnd && Math.max(next, VALUE.lastIndex) >= text.length - 1) {
          at = token.index;
          break;
        }
        const value = quoted ?? plain;
        const names = this.#refused || MAY_NAME.test(value) ? namesIn(value, token[1] === '*') : [];
        const found = names.find((name) => isForbiddenName(name, this.#refused));
        if (found !== undefined) return found;
      }
      at = next;
    }
    if (text.length - at > MAX_PARTIAL) return 'a name of 64 KiB';
    this.#text = text.slice(at);
    return undefined;
  }
}

/** The names that readers may decode from a parameter's value. */
function namesIn(value: string, isExtended: boolean): string[] {
  const name = value.replaceAll(/\r?\n[ \t]+/g, ' ').replaceAll(/\\(.)/gs, '$1');
  return [utf8(name), decoded(isExtended ? name.replace(/^[^']*'[^']*'/, '') : name)];
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(utf8(name));
  } catch {
    return name;
  }
}

/** One character per byte, because bytes are compared. */
const latin1 = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString('latin1');

const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');

/** Index of the first match of a global pattern from `from` on. */
function indexOf(pattern: RegExp, text: string, from: number): number | undefined {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index;
}
