/** Limits a list of changes for the audit row and the receipt. */
import { sha256Hex } from '../crypto/canonical.ts';

/** Limits of listed lines, and of characters in each. */
export const MAX_LISTED = 50;
const MAX_CHARACTERS = 300;

/**
 * Returns the first lines. When that is not all, also the number of the others and the hash of the whole list (each line followed by a line feed), so
 * that whoever has the list can prove what was left out.
 */
export function listedChanges(lines: readonly string[]): { changes: string[]; more?: number; all_sha256?: string } {
  const listed = lines.slice(0, MAX_LISTED).map(clipped);
  const more = lines.length - listed.length;
  const isWhole = more === 0 && listed.every((line, at) => line === lines[at]);
  return {
    changes: listed,
    ...(more > 0 && { more }),
    ...(!isWhole && { all_sha256: sha256Hex(lines.map((one) => `${one}\n`).join('')) }),
  };
}

const clipped = (line: string): string =>
  line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS).toWellFormed()}…` : line;
