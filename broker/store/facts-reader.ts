/** Reads facts: many questions together, and what has not changed since the last time not at all. */
import { present } from '../policy/present.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { ALL_PLATFORMS, prepareFacts, prepareFactVersions, type Question } from './facts.ts';
import { FACTS_COLUMNS, type FactsRow, type Whose } from './facts-columns.ts';
import { gather } from './gather.ts';
import type { Store } from './store.ts';

/**
 * `(agent_id, platform id, '' for none or ALL_PLATFORMS, source address or ANY_ADDRESS)` → no rows when there is no such agent, else a row
 * a grant. As long as nothing in the store changes, the same question is answered by the same array and objects, so what
 * was made of them can be kept by them (in a WeakMap): nobody may change them.
 *
 * `meanwhile` gets what most likely is the answer, while the store is asked whether it still stands. It may prepare what the
 * answer is needed for, and must take effect by nothing but the answer. It is not called where there is nothing to wait for.
 */
export type FactsReader = (
  agentId: string,
  platformId: string,
  source: string,
  meanwhile?: (likely: readonly FactsRow[]) => void,
) => Promise<readonly FactsRow[]>;

type Asked = Omit<Question, 'n'>;
type Asking = { asked: Asked; meanwhile: ((likely: readonly FactsRow[]) => void) | undefined };
type Values = readonly unknown[];
type Columns = readonly (keyof FactsRow)[];
type Which = 'one_platform' | 'all_platforms';

/** An answer, and the version of the facts that it is of. `sources`: from where it was asked of that version. */
type Kept = {
  whose: Whose;
  values: readonly Values[];
  rows: readonly FactsRow[];
  organisation: string;
  version: unknown;
  sources: Set<string>;
};

/** More questions in one statement bring nothing more. */
const MOST_QUESTIONS = 64;
/** Some 4 KiB each. Half as many agents and platforms in turn are always answered from memory. */
const KEPT = 8_000;
/** Whoever has very many addresses is asked for anew. */
const SOURCES_KEPT = 16;

/**
 * Questions that come at the same time are answered together. What is kept is used after one look at the version of the
 * organisation's facts, which every change replaces in its own transaction; the rest is asked for in full. PostgreSQL takes
 * that in one statement, because to start one with so many joins costs it, and us, several times what one more agent does.
 * Answered one after the other, questions also go on together, each step of theirs with the caches still warm from the last
 * one's: under load a call costs two thirds.
 */
export function factsReaders(store: Store): Readonly<Record<Whose, FactsReader>> {
  const readVersions = versionsReader(store);
  const memories = { one_platform: rememberAnswers(), all_platforms: rememberAnswers() };
  const readerFor = (whose: Whose): FactsReader => {
    const of = (which: Which) => readerOf(store, which, whose, readVersions, memories[which]);
    const [onePlatform, allPlatforms] = [of('one_platform'), of('all_platforms')];
    return (agent, platform, source, meanwhile) =>
      (platform === ALL_PLATFORMS ? allPlatforms : onePlatform)({ asked: { agent, platform, source }, meanwhile });
  };
  return { alone: readerFor('alone'), family: readerFor('family') };
}

function readerOf(
  store: Store,
  which: Which,
  whose: Whose,
  readVersions: VersionsReader,
  memory: Memory,
): (asking: Asking) => Promise<readonly FactsRow[]> {
  const one = prepareFacts(store.db, which, { many: false, whose });
  const readEach = (asked: readonly Asked[]) => Promise.all(asked.map((question) => store.read(one, question)));
  const readMany = manyReader(store, which, whose);
  return gather(async (asking: readonly Asking[]) => {
    const asked = asking.map((each) => each.asked);
    const known = asked.map((question) => memory.recall(question, whose));
    const answer = readVersions(new Set(known.flatMap((kept) => kept?.organisation ?? [])));
    const versions = await whileWaiting(answer, () => {
      for (const [at, kept] of known.entries()) if (kept) asking[at]?.meanwhile?.(kept.rows);
    });
    const isStanding = (kept: Kept | undefined): kept is Kept =>
      kept !== undefined && versions.get(kept.organisation) === kept.version;
    const unknown = asked.filter((_, at) => !isStanding(known[at]));
    // For one question alone the statement for many costs more.
    const isApart = store.dialect === 'sqlite' || unknown.length === 1;
    const answers = unknown.length === 0 ? [] : await (isApart ? readEach(unknown) : readMany(unknown));
    let next = 0;
    return known.map((kept, at) =>
      isStanding(kept)
        ? kept.rows
        : memory.rowsOf(present(asked[at], 'question'), whose, present(answers[next++], 'answer')),
    );
  }, MOST_QUESTIONS);
}

/** Does `work` once what was asked is on its way, unless the answer is there by then. */
async function whileWaiting<Answer>(answer: Promise<Answer>, work: () => void): Promise<Answer> {
  const soon = setImmediate(() => {
    try {
      work();
    } catch {
      // Whoever uses the answer meets the same, and can say so.
    }
  });
  try {
    return await answer;
  } finally {
    clearImmediate(soon);
  }
}

function manyReader(store: Store, which: Which, whose: Whose) {
  const many = prepareFacts(store.db, which, { many: true, whose });
  const numberAt = FACTS_COLUMNS[whose].length + 1;
  return async (asked: readonly Asked[]): Promise<Values[][]> => {
    const rows = await store.read(many, {
      agent: asked.map(({ agent }) => agent),
      platform: asked.map(({ platform }) => platform),
      source: asked.map(({ source }) => source),
    });
    const answers: Values[][] = asked.map(() => []);
    for (const row of rows) present(answers[(row[numberAt] as number) - 1], 'question').push(row);
    return answers;
  };
}

/** The versions of the facts about these organisations; of one that nobody knows there is none. */
type VersionsReader = (organisations: ReadonlySet<string>) => Promise<ReadonlyMap<string, unknown>>;

function versionsReader(store: Store): VersionsReader {
  const one = prepareFactVersions(store.db, { many: false });
  const many = prepareFactVersions(store.db, { many: true });
  return async (organisations) => {
    const found = new Map<string, unknown>();
    if (organisations.size === 0) return found;
    const ids = [...organisations];
    const answers =
      store.dialect === 'sqlite' || ids.length === 1
        ? await Promise.all(ids.map((organisation) => store.read(one, { organisation })))
        : [await store.read(many, { organisations: ids })];
    for (const [organisation, version] of answers.flat()) found.set(organisation as string, version);
    return found;
  };
}

type Memory = ReturnType<typeof rememberAnswers>;

/**
 * Keeps answers. One of another version that says the same, value for value, is the same array of the same objects. Of an agent
 * that has no parent both statements say the same, so whoever asks with either is answered by what the other one brought.
 */
function rememberAnswers() {
  const kept = recentlyUsed<Kept>(KEPT);
  const nameOf = ({ agent, platform }: Asked) => `${agent} ${platform}`;
  return {
    /** What is kept for this question; it stands only while the version does. */
    recall: (asked: Asked, whose: Whose): Kept | undefined => {
      const found = kept.get(nameOf(asked));
      return found?.sources.has(asked.source) && isFor(whose, found) ? found : undefined;
    },
    rowsOf: (asked: Asked, whose: Whose, values: readonly Values[]): readonly FactsRow[] => {
      const columns = FACTS_COLUMNS[whose];
      const name = nameOf(asked);
      const found = kept.get(name);
      // All rows of an answer are of one moment. Undefined, as when there are no rows, is the version of nothing.
      const version = values[0]?.[columns.length] ?? undefined;
      const shared = found?.whose === whose ? columns : FACTS_COLUMNS.alone;
      const isSame = found !== undefined && isFor(whose, found) && isEqual(found.values, values, shared.length);
      const rows = isSame ? found.rows : Object.freeze(values.map((row) => asRow(row, columns)));
      const isOfSource = isSame && found.version === version && found.sources.size < SOURCES_KEPT;
      const sources = (isOfSource ? found.sources : new Set<string>()).add(asked.source);
      // Whoever makes up agents or platforms must not push the real ones out.
      const { platform } = asked;
      const [first] = rows;
      const isReal = first && (platform === '' || platform === ALL_PLATFORMS || first.platform_id !== null);
      if (isReal && version !== undefined)
        kept.set(name, {
          whose: isSame ? found.whose : whose,
          values: isSame ? found.values : values,
          rows,
          organisation: first.organisation_id,
          version,
          sources,
        });
      else kept.delete(name);
      return rows;
    },
  };
}

/** Columns of the parent are empty, or not there, where there is none. */
const isFor = (whose: Whose, kept: Kept): boolean => kept.whose === whose || kept.rows[0]?.parent_id === null;

function asRow(values: Values, columns: Columns): FactsRow {
  return Object.freeze(Object.fromEntries(columns.map((column, at) => [column, values[at]]))) as FactsRow;
}

function isEqual(a: readonly Values[], b: readonly Values[], columns: number): boolean {
  if (a.length !== b.length) return false;
  for (let row = 0; row < a.length; row++)
    for (let at = 0; at < columns; at++) {
      const one = a[row]?.[at];
      const other = b[row]?.[at];
      if (
        one !== other &&
        !(one instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(one, other) === 0)
      )
        return false;
    }
  return true;
}
