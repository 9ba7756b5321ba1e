/** Ids as a person types them: as many characters from the beginning as tell one from the others. */
import { CommandFailed, WrongUsage } from './failure.ts';

/** Fewer characters are not taken, and not printed. */
export const LEAST = 6;
/** An id, or its beginning. */
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;

/** The shortest beginning of each id that no other one of them has, `LEAST` characters at least. */
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
      return [id, id.slice(0, Math.max(LEAST, needed))];
    }),
  );
}

/**
 * The one whose id begins with `given`; undefined when there is none. Throws WrongUsage for a text that is no id, and
 * CommandFailed with the candidates when there are several. `describe`: a candidate in one line.
 */
export function findByPrefix<T extends { id: string }>(
  all: readonly T[],
  given: string,
  describe: (one: T) => string,
): T | undefined {
  const prefix = given.toLowerCase();
  if (!PREFIX.test(prefix)) throw new WrongUsage(`${given} is no id: take one from the first column of the list.`);
  if (prefix.length < LEAST) throw new WrongUsage(`${given} is too short: give ${LEAST} characters of an id or more.`);
  const found = all.filter(({ id }) => id.startsWith(prefix));
  if (found.length > 1)
    throw new CommandFailed(
      `${given} is the beginning of ${found.length} ids. Give more of the one that you mean:\n${found.map((one) => `  ${one.id}  ${describe(one)}`).join('\n')}`,
    );
  return found[0];
}
