/**
 * What agents did before: looked up when a rule uses `first_time`, and stored for every call that was sent. Stored in the transaction of
 * the call's row when a rule asked or a person approved, so that nobody is asked twice; otherwise in batches soon after, because after a
 * start every seen value is new to the process, and one transaction each would delay all other calls.
 */
import { createHash } from 'node:crypto';
import { mayBeSent } from '../audit/effect.ts';
import type { Outcome } from '../audit/outcome.ts';
import type { Companion } from '../audit/recorder.ts';
import type { Broker } from '../broker.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import type { SeenValueKind } from '../policy/call-ask.ts';
import type { Ask } from '../policy/facts.ts';
import { familyIn } from '../policy/look-back.ts';
import { type SeenValue, type SeenValues, seenValuesOf } from '../policy/seen-values.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { isRowFault } from '../store/row-fault.ts';
import { findSeenValues, putSeenValues } from '../store/seen-values.ts';
import type { Db } from '../store/store.ts';
import type { AgentDeedTable } from '../store/tables/approvals.ts';
import type { Bit } from '../store/tables/column-types.ts';

/** About 20 MB when full; an evicted seen value is read from the store, or stored once more. */
const CACHE_SIZE = 100_000;
/** How long a batch of seen values that no rule asked about is collected before it is written. */
const BATCH_MS = 200;
/** Rows in one statement. */
const BATCH_ROWS = 500;
/** Rows kept while the store is unavailable; a seen value beyond them is stored the next time it is done. */
const MAX_PENDING = 50_000;

export type AgentSeenValues = {
  /** Returns the ask with what its agent does for the first time, when a rule of these facts uses it. */
  withFirstTimes<A extends Ask>(facts: LoadedFacts['facts'], ask: A): Promise<A>;
  /** Returns what to store for a finished call; undefined when all of it is known, or the call was not sent. */
  toRemember(outcome: Outcome, agentId: string, seenValues: () => SeenValues): Memory | undefined;
  /** Writes the pending batch. Throws when the store is unavailable; the batch is kept and retried. */
  write(): Promise<void>;
};

/**
 * `companion`: stores the seen values in the transaction of the call's row; call `keep` once that is durable. `writeSoon`: stores them without
 * the row. What a crash loses of these counts as never done, which asks a person once more and lets nothing through.
 */
export type Memory = { companion: Companion; keep(): void; writeSoon(): void };

/** SeenValues of agents: in the store, with recent ones cached in memory. */
export function agentSeenValues({ store, clock, log }: Pick<Broker, 'store' | 'clock' | 'log'>): AgentSeenValues {
  /** By agent and seen value; the value says whether it was done by a change. Never stale, because a seen value is never undone. */
  const done = recentlyUsed<Bit>(CACHE_SIZE);
  const isDone = (key: string, isChange: boolean): boolean => {
    const changed = done.get(key);
    return changed !== undefined && (changed === 1 || !isChange);
  };

  /** By agent and hash, because one statement cannot write a row twice. */
  let pending = new Map<string, AgentDeedTable>();
  let timer: NodeJS.Timeout | undefined;

  const write = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const entries = [...pending];
    pending = new Map();
    for (let at = 0; at < entries.length; at += BATCH_ROWS) {
      const rows = entries.slice(at, at + BATCH_ROWS).map(([, row]) => row);
      try {
        await putEach(store.db, rows, (error) => log.error({ err: error }, 'what an agent did cannot be stored'));
      } catch (error) {
        pending = new Map([...entries.slice(at), ...pending]);
        throw error;
      }
    }
  };
  const writeSoon = (rows: readonly AgentDeedTable[]): void => {
    for (const row of rows) {
      const key = `${row.agent_id} ${row.hash}`;
      if (pending.size < MAX_PENDING && pending.get(key)?.changed !== 1) pending.set(key, row);
    }
    // Housekeeping retries a failed write and logs it.
    timer ??= setTimeout(() => void write().catch(() => {}), BATCH_MS).unref();
  };

  const lookUp = async (organisationId: string, agentId: string, seenValues: readonly SeenValue[]): Promise<void> => {
    const hashes = new Map(seenValues.map((seenValue) => [hashOf(seenValue), keyOf(agentId, seenValue)]));
    const place = { organisation_id: organisationId, agent_id: agentId };
    for (const [hash, changed] of await findSeenValues(store.db, place, [...hashes.keys()])) {
      const key = hashes.get(hash);
      if (key !== undefined) done.set(key, changed);
    }
  };

  return {
    withFirstTimes: async (facts, ask) => {
      const { call, platformId } = ask;
      if (call === undefined || !facts.platform) return ask;
      if (!facts.policy?.readsFirstTimes && !facts.guardrails.readsFirstTimes) return ask;
      // A child shares its parent's seen values, so that no child has to be approved again.
      const agentId = familyIn(facts);
      const { known, unknown, isChange } = seenValuesOf(platformId, facts.platform.rules, call);
      const isNew = (seenValue: SeenValue) => !isDone(keyOf(agentId, seenValue), isChange);
      const asked = known.filter(isNew);
      if (asked.length > 0) await lookUp(facts.agent.organisationId, agentId, asked);
      const first = new Set<SeenValueKind>([...unknown, ...asked.filter(isNew).map(({ kind }) => kind)]);
      const firstTimes = {
        operation: first.has('operation'),
        recipient: first.has('recipient'),
        repository: first.has('repository'),
      };
      return { ...ask, call: { ...call, firstTimes } };
    },
    toRemember: (outcome, agentId, seenValues) => {
      if (!mayBeSent(outcome)) return undefined;
      const { known, isChange } = seenValues();
      const fresh = known.filter((seenValue) => !isDone(keyOf(agentId, seenValue), isChange));
      if (fresh.length === 0) return undefined;
      const changed = isChange ? 1 : 0;
      const rows = fresh.map(
        (seenValue): AgentDeedTable => ({
          organisation_id: outcome.call.organisationId,
          agent_id: agentId,
          hash: hashOf(seenValue),
          kind: seenValue.kind,
          changed,
          created_at: clock(),
        }),
      );
      const keep = (): void => {
        for (const seenValue of fresh) done.set(keyOf(agentId, seenValue), changed);
      };
      return {
        companion: {
          store: async (tx) => {
            await putSeenValues(tx, rows);
            return undefined;
          },
        },
        keep,
        writeSoon: () => {
          keep();
          writeSoon(rows);
        },
      };
    },
    write,
  };
}

/** Stores the rows. When the store refuses a row for its content, stores the others one by one. */
async function putEach(db: Db, rows: readonly AgentDeedTable[], refused: (error: unknown) => void): Promise<void> {
  try {
    await putSeenValues(db, rows);
  } catch (error) {
    if (!isRowFault(error)) throw error;
    if (rows.length === 1) refused(error);
    else for (const row of rows) await putEach(db, [row], refused);
  }
}

const keyOf = (agentId: string, { kind, value }: SeenValue): string => `${agentId} ${kind} ${value}`;

/** 128 bits, so that two seen values of one agent do not collide by chance. */
const hashOf = ({ kind, value }: SeenValue): string =>
  createHash('sha256').update(`${kind}\n${value}`).digest('base64url').slice(0, 22);
