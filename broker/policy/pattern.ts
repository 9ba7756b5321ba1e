/**
 * The patterns of governance files and manifests: in endpoints `*` is one segment and `**` any rest; in scopes, platforms, GraphQL
 * fields and tool names `*` is any text. Matching is hand-written and never uses a backtracking regular expression, so that no pattern can stall the broker.
 */
import { foldPath, type Spelling, spellingsOf, withoutFormat } from './spelling.ts';

export type Pattern = {
  source: string;
  /** Matches byte for byte, case-sensitively: only this match may give permission. */
  matches(text: string): boolean;
  /**
   * Also matches other spellings of a path that some servers treat as the same: other case, escaped reserved characters, `;parameters`, a trailing slash, a
   * format such as `.json` at the end (see spelling.ts). For rules that deny or hold, so that another spelling does not bypass them.
   */
  matchesAnySpelling(text: string, spellings?: readonly Spelling[]): boolean;
  /** Higher is more specific: a literal counts more than `*`, and `*` more than `**`. Compare within one kind only. */
  specificity: number;
  /** The segments of an endpoint pattern; empty for other patterns. Used by `relate` only. */
  segments: readonly string[];
};

/** How much of what `inner` matches is also matched by `outer`. */
export type Relation = 'all' | 'some' | 'none';

const MAX_PATTERN_LENGTH = 1024;
const MAX_PATTERN_SEGMENTS = 64;
/** RFC 3986 §3.3 pchar, which includes `*`. */
const PATH_PATTERN = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-F]{2})+$/;

/**
 * Compiles a pattern once, for many matches.
 *
 * @throws Error with a sentence that describes the problem and what to write instead.
 */
export function compilePattern(text: string, kind: 'path' | 'text'): Pattern {
  if (text === '') throw new Error('a pattern may not be empty; `*` matches any text, `/**` any endpoint');
  if (text.length > MAX_PATTERN_LENGTH) throw new Error(`a pattern has at most ${MAX_PATTERN_LENGTH} characters`);
  return kind === 'path' ? compilePathPattern(text) : compileTextPattern(text);
}

/**
 * Compares two endpoint patterns. `all`: whatever `inner` matches, `outer` matches. `none`: no path matches both. When neither can be proved, the result is
 * `some`, which every caller treats as "it depends on the call".
 *
 * @param spelling how `outer` is matched: `matches`, or `matchesAnySpelling` without or with escaped slashes in paths.
 */
export function relate(
  outer: Pattern,
  inner: Pattern,
  spelling: 'exact' | 'any' | 'any_with_slashes' = 'exact',
): Relation {
  if (covers(outer.segments, inner.segments)) return 'all';
  const together = overlaps(outer.segments, inner.segments);
  if (spelling === 'exact') return together ? 'some' : 'none';
  const folded = foldPath(outer.segments);
  const widened = inner.segments.flatMap((segment) => widen(segment, spelling === 'any_with_slashes'));
  const spelt = foldPath(widened);
  if (covers(folded, spelt)) return 'all';
  const bare = withoutAnyFormat(spelt);
  if (bare !== undefined && !inner.source.includes('*') && covers(folded, bare)) return 'all';
  return together || overlaps(folded, spelt) || (bare && overlaps(folded, bare)) ? 'some' : 'none';
}

/** Returns the shortest pattern that is left when a format at the end of what a pattern matches is removed. */
function withoutAnyFormat(segments: readonly string[]): string[] | undefined {
  const rest = segments.findLastIndex((segment) => segment !== '**') + 1;
  return rest === 0 ? undefined : withoutFormat(segments.slice(0, rest));
}

/** Returns patterns for the readings of a segment: `;` may cut off what a `*` and everything after it match, `%2F` may end the segment. */
function widen(segment: string, slashes: boolean): string[] {
  const star = segment.indexOf('*');
  if (star < 0) return slashes && /%2f/i.test(segment) ? ['**'] : [segment];
  if (segment === '**') return [segment];
  const cut = `${segment.slice(0, star).replace(/(?:\.|%20)+$/, '')}*`;
  return slashes ? [cut, '**'] : [cut];
}

/** Whether `text` matches a glob in which `*` is any text, including the empty text. Time: text length × pieces. */
export function matchesGlob(glob: string, text: string): boolean {
  if (!glob.includes('*')) return glob === text;
  const pieces = glob.split('*');
  const first = pieces[0] ?? '';
  const last = pieces[pieces.length - 1] ?? '';
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (let i = 1; i < pieces.length - 1; i++) {
    const piece = pieces[i] ?? '';
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

function compileTextPattern(text: string): Pattern {
  if (text.includes('**')) throw new Error(`"${text}": \`**\` is for endpoints only; here \`*\` already is any text`);
  if (/[\p{Cc}\p{Cs}]/u.test(text) || text.trim() !== text) {
    throw new Error(`${JSON.stringify(text)}: a pattern has no control characters, and no space at its ends`);
  }
  const exact = !text.includes('*');
  const matches = exact ? (value: string) => value === text : (value: string) => matchesGlob(text, value);
  const specificity = text.replaceAll('*', '').length + (exact ? MAX_PATTERN_LENGTH : 0);
  return { source: text, matches, matchesAnySpelling: matches, specificity, segments: [] };
}

function compilePathPattern(text: string): Pattern {
  const refuse = (why: string): never => {
    throw new Error(`"${text}" is not an endpoint pattern: ${why}`);
  };
  if (!text.startsWith('/')) refuse('it must begin with `/`');
  if (/[{}]/.test(text)) refuse('write `*` for a variable segment, not `{name}`');
  if (/[?#]/.test(text)) refuse('it matches the path only; test the query in a `when` condition (`request.query`)');
  if (!PATH_PATTERN.test(text)) refuse('it may hold only characters of a URL path, with escapes in upper case (`%2F`)');
  const segments = text.slice(1).split('/');
  if (segments.length > MAX_PATTERN_SEGMENTS) refuse(`it has more than ${MAX_PATTERN_SEGMENTS} segments`);
  segments.forEach((segment, i) => {
    if (segment === '' && i < segments.length - 1) refuse('`//` never reaches a platform');
    if (segment === '.' || segment === '..') refuse('dot segments never reach a platform');
    if (segment !== '**' && segment.includes('**')) refuse('`**` matches a complete remainder, between slashes');
  });
  const folded = foldPath(segments);
  const wild = text.search(/\*/);
  const prefix = wild < 0 ? text : text.slice(0, text.lastIndexOf('/', wild));
  const matches = (path: string) =>
    wild < 0 ? path === text : path.startsWith(prefix) && matchesSegments(segments, path.slice(1).split('/'));
  return {
    source: text,
    matches,
    matchesAnySpelling: (path, spellings = spellingsOf(path)) =>
      matches(path) || spellings.some((spelling) => matchesSegments(folded, spelling)),
    specificity: segments.reduce((sum, segment) => sum + weight(segment), 0),
    segments,
  };
}

/** Weights differ by factors that 64 segments cannot bridge, so that they compare like digits. */
function weight(segment: string): number {
  if (segment === '**') return -1;
  if (segment === '*') return 100;
  return segment.includes('*') ? 10_000 : 1_000_000;
}

function matchesSegment(pattern: string, segment: string): boolean {
  return pattern === '*' ? segment !== '' : matchesGlob(pattern, segment);
}

/** Greedy glob matching on segments: backtracks only to the last `**`. */
function matchesSegments(
  pattern: readonly string[],
  path: readonly string[],
  matches: (piece: string, segment: string) => boolean = matchesSegment,
): boolean {
  let p = 0;
  let s = 0;
  let restAt = -1;
  let restFrom = 0;
  for (let segment = path[s]; segment !== undefined; segment = path[s]) {
    const piece = pattern[p];
    if (piece === '**') {
      restAt = p++;
      restFrom = s;
    } else if (piece !== undefined && matches(piece, segment)) {
      p++;
      s++;
    } else if (restAt >= 0) {
      p = restAt + 1;
      s = ++restFrom;
    } else return false;
  }
  while (pattern[p] === '**') p++;
  return p === pattern.length;
}

/**
 * Whether every path that `inner` matches is matched by `outer`: `inner`'s wildcards are treated as symbols that only a wildcard at least as wide can match.
 */
function covers(outer: readonly string[], inner: readonly string[]): boolean {
  return matchesSegments(outer, inner, (piece, segment) => segment !== '**' && matchesSegment(piece, segment));
}

/** Whether some path matches both. Never returns false when one does. */
function overlaps(a: readonly string[], b: readonly string[]): boolean {
  // reachable[j]: the first i segments of `a` and the first j of `b` can match the same path.
  let reachable = new Array<boolean>(b.length + 1).fill(false);
  reachable[0] = true;
  for (let j = 0; j < b.length && b[j] === '**'; j++) reachable[j + 1] = true;
  for (const piece of a) {
    const next = new Array<boolean>(b.length + 1).fill(false);
    next[0] = piece === '**' && reachable[0] === true;
    for (const [j, other] of b.entries()) {
      const beside = next[j] === true || reachable[j + 1] === true;
      const skipped = beside && (piece === '**' || other === '**');
      next[j + 1] = skipped || (reachable[j] === true && segmentsOverlap(piece, other));
    }
    reachable = next;
  }
  return reachable[b.length] === true;
}

function segmentsOverlap(a: string, b: string): boolean {
  if (a === '**' || b === '**') return true;
  if (!b.includes('*')) return matchesSegment(a, b);
  if (!a.includes('*')) return matchesSegment(b, a);
  const [a0, b0] = [a.slice(0, a.indexOf('*')), b.slice(0, b.indexOf('*'))];
  const [a1, b1] = [a.slice(a.lastIndexOf('*') + 1), b.slice(b.lastIndexOf('*') + 1)];
  return (a0.startsWith(b0) || b0.startsWith(a0)) && (a1.endsWith(b1) || b1.endsWith(a1));
}
