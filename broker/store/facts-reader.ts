/** Reads facts: many questions together, and rows that have not changed as the very same objects. */
import { ALL_PLATFORMS, FACTS_COLUMNS, type FactsRow, prepareFacts, type Question, type Whose } from './facts.ts';
import { gather } from './gather.ts';
import type { Store } from './store.ts';

/**
 * `(agent_id, platform id, '' for none or ALL_PLATFORMS, source address)` → no rows when there is no such agent, else a row
 * a grant. As long as nothing in the store changes, the same question is answered by the same array and objects, so what
 * was made of them can be kept by them (in a WeakMap): nobody may change them.
 */
export type FactsReader = (agentId: string, platformId: string, source: string) => Promise<readonly FactsRow[]>;

type Asked = Omit<Question, 'n'>;
type Values = readonly unknown[];
type Columns = readonly (keyof FactsRow)[];

/** More questions in one statement bring nothing more. */
const MOST_QUESTIONS = 64;
/** Some 4 KiB each. */
const KEPT = 4_000;

/**
 * Questions that come at the same time are answered together. PostgreSQL takes them in one statement, because to start
 * one with so many joins costs it, and us, several times what one more agent does. Answered one after the other they also
 * go on together, each step of theirs with the caches still warm from the last one's: under load a call costs two thirds.
 */
export function factsReader(store: Store, whose: Whose): FactsReader {
  const onePlatform = readerOf(store, 'one_platform', whose);
  const allPlatforms = readerOf(store, 'all_platforms', whose);
  return (agent, platform, source) =>
    (platform === ALL_PLATFORMS ? allPlatforms : onePlatform)({ agent, platform, source });
}

function readerOf(
  store: Store,
  which: 'one_platform' | 'all_platforms',
  whose: Whose,
): (asked: Asked) => Promise<readonly FactsRow[]> {
  const one = prepareFacts(store.db, which, { many: false, whose });
  const readEach = (asked: readonly Asked[]) => Promise.all(asked.map((question) => store.read(one, question)));
  const readMany = manyReader(store, which, whose);
  const rowsOf = sameWhileEqual(FACTS_COLUMNS[whose]);
  return gather(async (asked) => {
    // For one question alone the statement for many costs more.
    const answers = await (store.dialect === 'sqlite' || asked.length === 1 ? readEach(asked) : readMany(asked));
    return asked.map((question, at) => rowsOf(question, answers[at]!));
  }, MOST_QUESTIONS);
}

function manyReader(store: Store, which: 'one_platform' | 'all_platforms', whose: Whose) {
  const many = prepareFacts(store.db, which, { many: true, whose });
  const numberAt = FACTS_COLUMNS[whose].length;
  return async (asked: readonly Asked[]): Promise<Values[][]> => {
    const rows = await store.read(many, {
      agent: asked.map(({ agent }) => agent),
      platform: asked.map(({ platform }) => platform),
      source: asked.map(({ source }) => source),
    });
    const answers: Values[][] = asked.map(() => []);
    for (const row of rows) answers[(row[numberAt] as number) - 1]!.push(row);
    return answers;
  };
}

/** Compares with what the store said the last time, value for value: what differs in anything is new. */
function sameWhileEqual(columns: Columns): (asked: Asked, rows: readonly Values[]) => readonly FactsRow[] {
  const kept = new Map<string, { values: readonly Values[]; rows: readonly FactsRow[] }>();
  return ({ agent, platform }, values) => {
    const name = `${agent} ${platform}`;
    const found = kept.get(name);
    if (found && isEqual(found.values, values, columns.length)) return found.rows;
    const rows = Object.freeze(values.map((row) => asRow(row, columns)));
    kept.delete(name);
    // Whoever makes up agents or platforms must not push the real ones out.
    const isReal = rows[0] && (platform === '' || platform === ALL_PLATFORMS || rows[0].platform_id !== null);
    if (isReal) kept.set(name, { values, rows });
    if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
    return rows;
  };
}

function asRow(values: Values, columns: Columns): FactsRow {
  return Object.freeze(Object.fromEntries(columns.map((column, at) => [column, values[at]]))) as FactsRow;
}

function isEqual(a: readonly Values[], b: readonly Values[], columns: number): boolean {
  if (a.length !== b.length) return false;
  for (let row = 0; row < a.length; row++)
    for (let at = 0; at < columns; at++) {
      const [one, other] = [a[row]![at], b[row]![at]];
      if (
        one !== other &&
        !(one instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(one, other) === 0)
      )
        return false;
    }
  return true;
}
