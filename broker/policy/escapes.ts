/** Percent-escapes (RFC 3986 §2.1) as the many readers of a URL may take them: once, twice, until nothing is left. */

const ESCAPES = /(?:%[0-9A-Fa-f]{2})+/g;
const MAX_ROUNDS = 3;

/** One round of unescaping. Escapes that are no UTF-8 stay as they are. */
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
 * The text after one, two and three rounds of unescaping, as far as each round changes it; undefined when a fourth would
 * change it still. The text itself is not in the list.
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
