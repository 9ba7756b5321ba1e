/** Suggests existing names similar to a wrong one. */

/**
 * Returns the names nearest to one that does not exist, best first, at most three; empty when none is near enough. Case-insensitive. `allowed`: how many
 * characters may differ.
 */
export function similarNames(
  wrong: string,
  names: Iterable<string>,
  allowed = Math.max(2, Math.floor(wrong.length / 6)),
): string[] {
  if (wrong.length > 100) return [];
  return [...names]
    .map((name) => ({ name, distance: distance(wrong.toLowerCase(), name.toLowerCase(), allowed) }))
    .filter((near) => near.distance <= allowed && near.distance < wrong.length)
    .toSorted((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, 3)
    .map((near) => near.name);
}

/** Returns ` Did you mean "a" or "b"?`, or an empty string. */
export function didYouMean(wrong: string, names: Iterable<string>): string {
  const near = similarNames(wrong, names);
  return near.length === 0 ? '' : ` Did you mean ${near.map((name) => JSON.stringify(name)).join(' or ')}?`;
}

/** Levenshtein distance; any number above `most` when it is larger. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    let left = i;
    const next = [left];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      left = Math.min(changed, (row[j] ?? 0) + 1, left + 1);
      next.push(left);
    }
    row = next;
  }
  return row[b.length] ?? most + 1;
}
