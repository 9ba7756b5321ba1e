/**
 * Checks before a text is parsed: sizes and depths that would take the parser seconds, and characters that cannot be stored, or that
 * make the displayed text differ from the actual one.
 */
import { Lexer } from 'yaml';

const MAX_BYTES = 8 * 1024 * 1024;
/** A million bytes of brackets or of one-letter keys cost the parser seconds; this many tokens cost it less than one. */
const MAX_TOKENS = 500_000;
const MAX_FLOW_DEPTH = 32;
/** `- - - - …` and `? ? ? …` nest without brackets. */
const MAX_BLOCK_INDICATORS = 32;
const MAX_INDENT = 256;

/** Control characters except tab, line feed and carriage return; lone surrogates; characters that reorder text on the screen. */
const UNREADABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/u;

/** Returns the text with these characters as escapes (`\u202e`), which are valid in comments and double-quoted texts. */
export const readable = (text: string): string =>
  text.replaceAll(new RegExp(UNREADABLE, 'gu'), (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });

/** Characters that cannot be stored at all, not even as an escape: NUL and lone surrogates. */
const UNSTORABLE = /\0|\p{Cs}/u;

/** The marks that the lexer inserts between the tokens of the text: document start, broken flow, scalar. */
const MARKS = new Set(['\u0002', '\u0018', '\u001f']);

export type Refusal = { offset: number; message: string };

/** Describes the first character of a value that a governance file cannot represent; undefined when there is none. */
export const unstorable = (value: string): Refusal | undefined => refusedCharacter(value, UNSTORABLE);

function refusedCharacter(text: string, which: RegExp): Refusal | undefined {
  const found = which.exec(text);
  if (found === null) return undefined;
  const code = (found[0].codePointAt(0) ?? 0).toString(16).padStart(4, '0');
  const hint = UNSTORABLE.test(found[0]) ? '' : ` as it is; write "\\u${code}", in double quotes`;
  const message = `holds the character U+${code.toUpperCase()}, which is not allowed in a governance file${hint}`;
  return { offset: found.index, message };
}

/** Returns the first reason not to parse this text at all, or undefined. `text`: without a byte order mark. */
export function refuseText(text: string): Refusal | undefined {
  if (text.length > MAX_BYTES || Buffer.byteLength(text, 'utf8') > MAX_BYTES)
    return { offset: 0, message: 'is larger than 8 MiB; a governance file has at most that' };
  return refusedCharacter(text, UNREADABLE) ?? refuseTokens(text);
}

function refuseTokens(text: string): Refusal | undefined {
  let offset = 0;
  let tokens = 0;
  let depth = 0;
  let indicators = 0;
  for (const token of new Lexer().lex(text)) {
    if (MARKS.has(token)) continue;
    if (++tokens > MAX_TOKENS)
      return {
        offset,
        message: `has more than ${MAX_TOKENS} parts (names, values, brackets, line breaks); a governance file has at most that`,
      };
    if (token === '[' || token === '{') depth++;
    else if (token === ']' || token === '}') depth--;
    else if (depth === 0 && (token === '-' || token === '?')) indicators++;
    else if (token.startsWith('\n') || token.startsWith('\r')) indicators = 0;
    if (depth > MAX_FLOW_DEPTH || indicators > MAX_BLOCK_INDICATORS) return { offset, message: 'is nested too deeply' };
    if (token.length > MAX_INDENT && /^[ \t]+$/.test(token))
      return { offset, message: `holds more than ${MAX_INDENT} spaces in a row` };
    offset += token.length;
  }
  return undefined;
}
