/** A list of changes as it goes on record and into the receipt. */
import { sha256Hex } from '../crypto/canonical.ts';

/** Lines that are listed at most, and characters of each. */
export const MOST_LISTED = 50;
const MOST_CHARACTERS = 300;

/**
 * The first lines. Where that is not all, with the number of others and the hash of the whole list, a line feed after each, so that who
 * has the list can show what was left out.
 */
export function listedChanges(lines: readonly string[]): { changes: string[]; more?: number; all_sha256?: string } {
  const listed = lines.slice(0, MOST_LISTED).map(clipped);
  const more = lines.length - listed.length;
  const isWhole = more === 0 && listed.every((line, at) => line === lines[at]);
  return {
    changes: listed,
    ...(more > 0 && { more }),
    ...(!isWhole && { all_sha256: sha256Hex(lines.map((one) => `${one}\n`).join('')) }),
  };
}

const clipped = (line: string): string =>
  line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS).toWellFormed()}…` : line;
