/**
 * Inserts, replaces or removes one member of an object in JSON with comments, without changing any other character. The
 * parser's own `modify` reformats neighbours, and removes comments together with a member after them.
 */

import { createScanner, type Node, type SyntaxKind } from 'jsonc-parser';
import { present } from '../../broker/runtime/present.ts';

// The library's names for these are a const enum without values at run time.
const COMMA: SyntaxKind.CommaToken = 5;
const LINE_COMMENT: SyntaxKind.LineCommentTrivia = 12;
const LINE_BREAK: SyntaxKind.LineBreakTrivia = 14;
const BLANKS: SyntaxKind.Trivia = 15;
const EOF: SyntaxKind.EOF = 17;

export type Style = { eol: string; indent: string };

/** Appends a member to `object`. */
export function insertMember(text: string, object: Node, [name, value]: [string, unknown], style: Style): string {
  const close = object.offset + object.length - 1;
  const last = object.children?.at(-1);
  const after = last ? last.offset + last.length : object.offset + 1;
  const tail = text.slice(after, close);
  const outer = indentAt(text, object.offset);
  const inner = outer + style.indent;
  const member = `${style.eol}${inner}${JSON.stringify(name)}: ${written(value, inner, style)}`;
  const comma = last && commaAfter(text, after, close) === undefined ? ',' : '';
  // Keep comments after the last member in place.
  const kept = tail.trimEnd();
  const end = tail.slice(kept.length).includes('\n') ? tail.slice(kept.length) : style.eol + outer;
  return text.slice(0, after) + comma + kept + member + end + text.slice(close);
}

export function replaceValue(text: string, value: Node, next: unknown, style: Style): string {
  const indent = indentAt(text, value.offset);
  return text.slice(0, value.offset) + written(next, indent, style) + text.slice(value.offset + value.length);
}

/** Removes a member with the comma that becomes redundant. */
export function removeMember(text: string, member: Node): string {
  const { offset: open, length, children: siblings = [] } = present(member.parent, 'object around the member');
  const end = member.offset + member.length;
  const own = commaAfter(text, end, open + length - 1);
  const rest = text.slice(own === undefined ? end : own + 1);
  const last = lastToken(text, open, member.offset);
  const isAlone = siblings.length === 1 && last.end === open + 1;
  // The rest of the line must not become part of a preceding line comment.
  const joins = last.kind === LINE_COMMENT && !/^[ \t]*\r?\n/.test(rest);
  const before = text.slice(0, joins ? member.offset : last.end);
  const after = joins ? rest.replace(/^[ \t]+/, '') : rest;
  if (own !== undefined) return before + after;
  const previous = siblings[siblings.indexOf(member) - 1];
  const comma = previous && commaAfter(text, previous.offset + previous.length, member.offset);
  if (comma !== undefined) return before.slice(0, comma) + before.slice(comma + 1) + after;
  // Collapse an object that becomes empty.
  return isAlone ? before + after.trimStart() : before + after;
}

/** Returns the last token in `[from, to)` except white space, comments included. There is always one: the bracket at `from`. */
function lastToken(text: string, from: number, to: number): { kind: SyntaxKind; end: number } {
  const scanner = createScanner(text);
  scanner.setPosition(from);
  let last = { kind: scanner.scan(), end: from + 1 };
  for (let kind = scanner.scan(); kind !== EOF && scanner.getTokenOffset() < to; kind = scanner.scan())
    if (kind !== LINE_BREAK && kind !== BLANKS)
      last = { kind, end: scanner.getTokenOffset() + scanner.getTokenLength() };
  return last;
}

/** Returns the position of the comma between two positions, outside of comments. */
function commaAfter(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text);
  scanner.setPosition(from);
  for (let kind = scanner.scan(); kind !== EOF && scanner.getTokenOffset() < to; kind = scanner.scan())
    if (kind === COMMA) return scanner.getTokenOffset();
  return undefined;
}

/** Returns the indentation of the line of this position. */
const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? '';

const written = (value: unknown, indent: string, style: Style): string =>
  JSON.stringify(value, null, style.indent).replaceAll('\n', style.eol + indent);
