/** Abbreviated ids: prefixes that are long enough to be unique. */
import { CommandFailed, WrongUsage } from './failure.ts';

/** The shortest prefix that is accepted and printed. */
export const MIN = 6;
/** Matches an id, or its prefix. */
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;

/** Returns the shortest unique prefix of each id, of at least `MIN` characters. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const sorted = ids.toSorted();
  const shared = (a: string, b = ''): number => {
    let length = 0;
    while (length < a.length && a[length] === b[length]) length++;
    return length;
  };
  return new Map(
    sorted.map((id, i) => {
      const needed = Math.max(shared(id, sorted[i - 1]), shared(id, sorted[i + 1])) + 1;
      return [id, id.slice(0, Math.max(MIN, needed))];
    }),
  );
}

/**
 * Returns the item whose id begins with `given`; undefined when there is none. Throws WrongUsage for a text that is not an id prefix, and
 * CommandFailed with the candidates when there are several. `describe`: formats a candidate in one line.
 */
export function findByPrefix<T extends { id: string }>(
  all: readonly T[],
  given: string,
  describe: (one: T) => string,
): T | undefined {
  const prefix = given.toLowerCase();
  if (!PREFIX.test(prefix)) throw new WrongUsage(`${given} is no id: take one from the first column of the list.`);
  if (prefix.length < MIN) throw new WrongUsage(`${given} is too short: give ${MIN} characters of an id or more.`);
  const found = all.filter(({ id }) => id.startsWith(prefix));
  if (found.length > 1)
    throw new CommandFailed(
      `${given} is the beginning of ${found.length} ids. Give more of the one that you mean:\n${found.map((one) => `  ${one.id}  ${describe(one)}`).join('\n')}`,
    );
  return found[0];
}
