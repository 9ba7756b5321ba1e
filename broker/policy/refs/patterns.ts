/**
 * Patterns of git refs in the constraints of a grant: `agent/*` matches every branch directly under `agent/`, `release/**` every one below `release/`,
 * `refs/tags/v*` some tags. Letter case is significant, as in git.
 */
import { matchesGlob } from '../pattern.ts';
import { refNameProblem } from './name.ts';

const HEADS = 'refs/heads/';
const TAGS = 'refs/tags/';
/** Returns why a text is not a pattern of refs, and what to write instead; undefined when it is one. */
export function refPatternProblem(text: string): string | undefined {
  if (/^(?:heads|tags)\//.test(text)) return `begins in the middle of a name; write "refs/${text}"`;
  const full = fullPattern(text);
  if (!full.startsWith(HEADS) && !full.startsWith(TAGS))
    return 'is outside of refs/heads/ and refs/tags/; only branches and tags can be allowed';
  const pieces = full.split('/');
  if (pieces.some((piece, i) => piece.includes('**') && (piece !== '**' || i < pieces.length - 1)))
    return '`**` stands alone at the end: "agent/**"; `*` is any text within one segment';
  if (refNameProblem(full.replaceAll('*', 'x')) === undefined) return undefined;
  return 'is no name or pattern of a branch or tag; write "main", "agent/*", "agent/**" or "refs/tags/v*"';
}

/** Whether one of the patterns matches this full name of a ref. Malformed patterns match nothing. */
export function matchesRef(patterns: readonly string[], name: string): boolean {
  return refNameProblem(name) === undefined && wellFormed(patterns).some((pattern) => covers(pattern, name));
}

/**
 * Returns the patterns of two lists that match only what both lists match. Where two overlap and neither covers the other (`a*` and `*b`), their intersection
 * cannot be written as a pattern, and is omitted.
 */
export function intersectRefs(a: readonly string[], b: readonly string[]): string[] {
  const within = (entry: string, list: readonly string[]) =>
    wellFormed(list).some((other) => covers(other, fullPattern(entry)));
  const kept = [...a.filter((entry) => within(entry, b)), ...b.filter((entry) => within(entry, a))];
  return kept.filter((entry, i) => kept.findIndex((other) => fullPattern(other) === fullPattern(entry)) === i);
}

/** A pattern that does not begin with `refs/` is one of branches. */
function fullPattern(text: string): string {
  return text.startsWith('refs/') ? text : HEADS + text;
}

function wellFormed(patterns: readonly string[]): string[] {
  return patterns.flatMap((one) => (refPatternProblem(one) === undefined ? [fullPattern(one)] : []));
}

/**
 * Whether a full pattern matches a name, or everything that another pattern matches: wildcards of `inner` are symbols that only a wildcard at least as wide
 * can match.
 */
function covers(outer: string, inner: string): boolean {
  const [a, b] = [outer.split('/'), inner.split('/')];
  const isOpen = a.at(-1) === '**';
  if (isOpen ? b.length < a.length : b.length !== a.length) return false;
  return (isOpen ? a.slice(0, -1) : a).every((piece, i) => {
    const other = b[i] ?? '';
    return other !== '**' && matchesGlob(piece, other);
  });
}
