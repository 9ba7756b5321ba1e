/**
 * The spellings of a path that some servers treat as the same, for rules that deny or hold, so that another spelling does not bypass them. Nothing here gives
 * permission. Also decodes percent-escapes (RFC 3986 §2.1) in the ways in which servers may: once, twice, until none is left.
 */

/** A path, split into segments, as a lenient server might read it. */
export type Spelling = readonly string[];

/** RFC 3986 §3.3 leaves these to the server; some end a path there, escaped or not. */
const CUT = /[;?#]/;
const ASCII = /^[\x00-\x7f]*$/;
const NOT_PLAIN = /[A-Z%;]|\/$/;

/** Whether a pattern or path folds to itself. May return false for one that does, never true for one that does not. */
export function isFolded(path: string): boolean {
  return !NOT_PLAIN.test(path) && !path.includes('./') && !path.endsWith('.');
}

/** Whether a path has a single reading. May return false for one that does, never true for one that does not. */
export function isPlainPath(path: string): boolean {
  return isFolded(path) && path.indexOf('.', path.lastIndexOf('/')) < 0;
}

/** Returns the readings of a path that `matchesAnySpelling` compares; compute them once for many patterns. */
export function spellingsOf(path: string): Spelling[] {
  const segments = path.slice(1).split('/');
  if (isPlainPath(path)) return [segments];
  const kept = foldPath(segments);
  const readings = [kept];
  // An escaped slash may be data or a separator, depending on the server.
  if (/%2f/i.test(path)) readings.push(foldPath(segments.flatMap((segment) => fold(segment, false).split('/'))));
  for (const reading of readings.slice()) {
    const bare = withoutFormat(reading);
    if (bare !== undefined) readings.push(bare);
  }
  return readings;
}

/** Folds the segments of a path, or of a pattern, for the comparison of spellings. */
export function foldPath(segments: readonly string[]): string[] {
  const folded = segments.map((segment) => fold(segment, true));
  if (folded.length > 1 && folded[folded.length - 1] === '') folded.pop();
  return folded;
}

/**
 * Removes the format at the end of a path, which Rails and Grape (so GitLab, too) do not treat as part of it: `/a/b.json` is `/a/b`. Undefined when there is
 * none.
 */
export function withoutFormat(segments: Spelling): string[] | undefined {
  const last = segments[segments.length - 1] ?? '';
  const dot = last.lastIndexOf('.');
  return dot < 1 ? undefined : [...segments.slice(0, -1), withoutTail(last.slice(0, dot))];
}

/** Windows, and so IIS, drops dots and blanks at the end of a name. A name of nothing else is kept. */
function withoutTail(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '.' || text.charAt(end - 1).trim() === '')) end--;
  return end === 0 ? text : text.slice(0, end);
}

/**
 * Folds one segment: removes escapes, look-alikes (NFKC), letter case, `;parameters`, what follows an escaped `?` or `#`, and dots and blanks at the end. An
 * escaped slash is kept, as `%2f`.
 */
function fold(segment: string, keepSlash: boolean): string {
  let text = segment;
  if (text.includes('%')) {
    const guarded = keepSlash ? text.replace(/%(?:25)*2f/gi, '%2f').replaceAll('%2f', '\u0000') : text;
    text = unescapeToFixedPoint(guarded)?.at(-1) ?? guarded;
    if (!ASCII.test(text)) text = text.normalize('NFKC');
    text = text.replaceAll('\u0000', '%2f');
  }
  // Some servers treat an escaped `?` or `#` as a real one, and end the path there.
  const end = text.slice(1).search(CUT) + 1;
  if (end > 0) text = text.slice(0, end);
  const stem = withoutTail(text);
  // In the pattern `*.`, the dot is significant.
  return (stem.endsWith('*') ? text : stem).toLowerCase();
}

const ESCAPES = /(?:%[0-9A-Fa-f]{2})+/g;
const MAX_ROUNDS = 3;

/** Unescapes once. Escapes that are not UTF-8 are kept. */
export function unescapeOnce(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(ESCAPES, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

/**
 * Returns the text after one, two and three rounds of unescaping, as long as each round changes it; undefined when a fourth round would still change it. The
 * text itself is not in the list.
 */
export function unescapeToFixedPoint(text: string): string[] | undefined {
  const rounds: string[] = [];
  let current = text;
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const next = unescapeOnce(current);
    if (next === current) return rounds;
    if (round === MAX_ROUNDS) return undefined;
    rounds.push(next);
    current = next;
  }
  return rounds;
}
