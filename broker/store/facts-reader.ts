/** Reads facts: batches concurrent queries, and caches results by fact version. */
import { standingWhenStopped } from '../policy/agents-stopped.ts';
import { connectionIn } from '../policy/asked-platform.ts';
import { ALL_PLATFORMS } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { unpooled } from '../runtime/unpooled.ts';
import { readAgentsStopped } from './agents-stopped.ts';
import { batchLoader } from './batch-loader.ts';
import { prepareFacts, prepareFactVersions, type Question } from './facts.ts';
import { FACTS_COLUMNS, type FactsRow, type FactsScope } from './facts-columns.ts';
import type { Store } from './store.ts';

/**
 * `(agent_id, platform id, '' for none, ALL_PLATFORMS or ofConnection(…), source address or ANY_ADDRESS)` → no rows when there is no such
 * agent, else a row for each grant. While the store does not change, the same query returns the same array and objects, so derived values
 * can be cached by them (in a WeakMap). They are immutable.
 *
 * `meanwhile` is called with the cached rows while their version is being checked in the store. It may precompute (such as verify a
 * signature), but must have no effect before the result. It is not called when there is nothing to wait for.
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
type Which = 'one_platform' | 'of_connection' | 'all_platforms';

/** A cached result with its fact version. `sources`: the source addresses for which it is valid. */
type Kept = {
  scope: FactsScope;
  values: readonly Values[];
  rows: readonly FactsRow[];
  organisation: string;
  version: unknown;
  sources: Set<string>;
};

/** Larger batches are not faster. */
const MAX_QUESTIONS = 64;
/** Cache entries, of some 4 KiB each. Half as many agents and platforms in turn are always cache hits. */
const CACHE_SIZE = 8_000;
/** Source addresses of an entry; an agent with more is read from the store again. */
const CACHED_SOURCES = 16;

/**
 * Batches concurrent queries. Cached rows are used after reading the current version of the organisation's facts, which every
 * change replaces in its own transaction; the others are read in full. On PostgreSQL that is one statement, because starting
 * one with so many joins costs several times as much as one more agent in it. The calls of a batch also continue together,
 * with warm CPU caches: under load a call costs a third less.
 */
export function factsReaders(store: Store): Readonly<Record<FactsScope, FactsReader>> {
  const readVersions = versionsReader(store);
  const memories = { one_platform: factsCache(), of_connection: factsCache(), all_platforms: factsCache() };
  const readerFor = (scope: FactsScope): FactsReader => {
    const of = (which: Which) => readerOf(store, which, scope, readVersions, memories[which]);
    const [onePlatform, ofConnection, allPlatforms] = [of('one_platform'), of('of_connection'), of('all_platforms')];
    return (agent, platform, source, meanwhile) => {
      const connection = connectionIn(platform);
      if (connection !== undefined) return ofConnection({ asked: { agent, platform: connection, source }, meanwhile });
      return (platform === ALL_PLATFORMS ? allPlatforms : onePlatform)({
        asked: { agent, platform, source },
        meanwhile,
      });
    };
  };
  return { own: readerFor('own'), family: readerFor('family') };
}

function readerOf(
  store: Store,
  which: Which,
  scope: FactsScope,
  readVersions: VersionsReader,
  memory: Memory,
): (asking: Asking) => Promise<readonly FactsRow[]> {
  const one = prepareFacts(store.db, which, { many: false, scope });
  const readEach = (asked: readonly Asked[]) => Promise.all(asked.map((question) => store.read(one, question)));
  const readMany = manyReader(store, which, scope);
  return batchLoader(async (asking: readonly Asking[]) => {
    const asked = asking.map((each) => each.asked);
    const known = asked.map((question) => memory.recall(question, scope));
    const answer = readVersions(new Set(known.flatMap((kept) => kept?.organisation ?? [])));
    const versions = await whileWaiting(answer, () => {
      for (const [at, kept] of known.entries()) if (kept) asking[at]?.meanwhile?.(kept.rows);
    });
    const isStanding = (kept: Kept | undefined): kept is Kept =>
      kept !== undefined && versions.get(kept.organisation) === kept.version;
    const unknown = asked.filter((_, at) => !isStanding(known[at]));
    // For a single query the statement for many is slower.
    const isApart = store.dialect === 'sqlite' || unknown.length === 1;
    const answers = unknown.length === 0 ? [] : await (isApart ? readEach(unknown) : readMany(unknown));
    let next = 0;
    return known.map((kept, at) =>
      isStanding(kept)
        ? kept.rows
        : memory.rowsOf(present(asked[at], 'question'), scope, present(answers[next++], 'answer')),
    );
  }, MAX_QUESTIONS);
}

/** Runs `work` after the query was sent, unless its result has arrived by then. */
async function whileWaiting<Answer>(answer: Promise<Answer>, work: () => void): Promise<Answer> {
  const soon = setImmediate(() => {
    try {
      work();
    } catch {
      // The same error occurs again when the result is used, where it is handled.
    }
  });
  try {
    return await answer;
  } finally {
    clearImmediate(soon);
  }
}

function manyReader(store: Store, which: Which, scope: FactsScope) {
  const many = prepareFacts(store.db, which, { many: true, scope });
  const numberAt = FACTS_COLUMNS[scope].length + 1;
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

/** The fact versions of these organisations; none for unknown ones. */
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

type Memory = ReturnType<typeof factsCache>;

/**
 * The cache. A result of another version with equal values keeps the same array and objects. For an agent without a parent both
 * statements return the same rows, so either one's result serves both.
 */
function factsCache() {
  const kept = recentlyUsed<Kept>(CACHE_SIZE);
  const nameOf = ({ agent, platform }: Asked) => `${agent} ${platform}`;
  return {
    /** The cached result; valid only while the version is current. */
    recall: (asked: Asked, scope: FactsScope): Kept | undefined => {
      const found = kept.get(nameOf(asked));
      return found?.sources.has(asked.source) && isFor(scope, found) ? found : undefined;
    },
    rowsOf: (asked: Asked, scope: FactsScope, values: readonly Values[]): readonly FactsRow[] => {
      const columns = FACTS_COLUMNS[scope];
      const name = nameOf(asked);
      const found = kept.get(name);
      // All rows of a result have the same version. Undefined when there are no rows.
      const version = values[0]?.[columns.length] ?? undefined;
      const shared = found?.scope === scope ? columns : FACTS_COLUMNS.own;
      const isSame = found !== undefined && isFor(scope, found) && isEqual(found.values, values, shared.length);
      const own = isSame ? found.values : values.map(withOwnBytes);
      const rows = isSame ? found.rows : Object.freeze(own.map((row) => asRow(row, columns)));
      const isOfSource = isSame && found.version === version && found.sources.size < CACHED_SOURCES;
      const sources = (isOfSource ? found.sources : new Set<string>()).add(asked.source);
      // Unknown agents and platforms are not cached, so that made-up names cannot evict real ones.
      const { platform } = asked;
      const [first] = rows;
      const isReal = first && (platform === '' || platform === ALL_PLATFORMS || first.platform_id !== null);
      if (isReal && version !== undefined)
        kept.set(name, {
          scope: isSame ? found.scope : scope,
          values: own,
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

/** Copies sealed credentials, which the cache keeps: PostgreSQL's client returns them as views of a pool. */
const withOwnBytes = (values: Values): Values =>
  values.map((value) => (value instanceof Uint8Array ? unpooled(value) : value));

/** Without a parent, its columns are null or absent. */
const isFor = (scope: FactsScope, kept: Kept): boolean => kept.scope === scope || kept.rows[0]?.parent_id === null;

function asRow(values: Values, columns: Columns): FactsRow {
  const row = Object.fromEntries(columns.map((column, at) => [column, values[at]])) as FactsRow;
  const stopped = readAgentsStopped(row.agents_stopped);
  return Object.freeze(stopped === undefined ? row : standingWhenStopped(row, stopped));
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
