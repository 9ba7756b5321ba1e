/**
 * Calls that rules look back at: looked up before a call is decided, and noted in the transaction of its intent, before its agent can have
 * read an answer.
 */
import type { Broker, Uses } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import { describeEarlier, type Earlier, REPEAT_WINDOW_MS, unknownUntil, untilOf } from '../policy/earlier.ts';
import type { Ask, Facts, Instant } from '../policy/facts.ts';
import { familyIn, lookBack, lookedBackAt } from '../policy/look-back.ts';
import type { After } from '../policy/rules/rule.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { findCallMarks, putCallMarks } from '../store/call-marks.ts';
import type { Db } from '../store/store.ts';
import type { CallMarkTable } from '../store/tables/rules.ts';
import { withCharges } from './limits.ts';

/** About 10 MB when full; an evicted mark is read from the store, or written once more. */
const CACHE_SIZE = 50_000;

export type EarlierCalls = {
  /** Returns the ask with the look-back rules that apply because of earlier calls, and with what to note of this call. */
  withEarlier<A extends Ask>(facts: Facts, ask: A, now: Instant): Promise<A>;
  /** The same for a call that is itself noted: marks of its own audit row (`auditId`) are left out. */
  withOthers<A extends Ask>(facts: Facts, ask: A, call: Noted): Promise<A>;
  /** Notes a call in the transaction of its intent. `auditId`: its audit row. */
  note(tx: Db, facts: Facts, ask: Ask, call: Noted): Promise<void>;
  /** Notes a past call again, from what is known of it. */
  noteAgain(facts: Facts, ask: Ask, call: Noted): Promise<void>;
  /** Notes a call again periodically while its answer is read, until the returned function is called. */
  whileRead(facts: Facts, ask: Ask, auditId: string): () => void;
  /** Caches the marks of a call once its intent is durable. */
  noted(facts: Facts, ask: Ask, call: Noted): void;
  /**
   * Returns why a call whose body was still being uploaded when it was decided may not be completed: what its agent read meanwhile could be
   * in the body.
   */
  meanwhile(facts: Facts, ask: Ask): Promise<AccessEnded | undefined>;
};

/** Returns the ask with everything that rules use of the past: usage of limits, and earlier calls. */
export async function withPast<A extends Ask>(
  { broker, earlierCalls }: Uses<'store'> & { earlierCalls: EarlierCalls },
  facts: Facts,
  ask: A,
  now: Instant,
): Promise<A> {
  return await earlierCalls.withEarlier(facts, await withCharges(broker, facts, ask, now), now);
}

/** The kind under which calls are noted for a look-back rule. `text`: the rule's look-back condition (policy/rules/compile.ts). */
export const kindOfText = (text: string): string => sha256Hex(text).slice(0, 32);

/** The audit row of a call, and when it was made. */
type Noted = { auditId: string; now: Instant };
type Mark = Pick<CallMarkTable, 'made_at' | 'audit_id'>;

/**
 * Keeps track of earlier calls. `againMs`: the interval at which a call whose answer is still being read is noted again. Look-back rules
 * apply longer than their window by enough to cover what is read in between.
 */
export function earlierCalls(
  { store, clock, log, keysRestoredAt: restoredAt }: Pick<Broker, 'store' | 'clock' | 'log' | 'keysRestoredAt'>,
  againMs = REPEAT_WINDOW_MS / 2,
): EarlierCalls {
  /** Durable marks, by agent and kind. Marks are never removed, so a cached one is true and at worst older than the stored one. */
  const known = recentlyUsed<Mark>(CACHE_SIZE);
  const kinds = new WeakMap<After, string>();
  const kindOf = (after: After): string => {
    const kind = kinds.get(after) ?? kindOfText(after.text);
    kinds.set(after, kind);
    return kind;
  };
  const keep = (facts: Facts, kind: string, mark: Mark): void => {
    const key = `${familyIn(facts)} ${kind}`;
    if ((known.get(key)?.made_at ?? Number.NEGATIVE_INFINITY) < mark.made_at) known.set(key, mark);
  };
  const rowsOf = (facts: Facts, of: readonly string[], { auditId, now }: Noted): CallMarkTable[] =>
    of.map((kind) => ({
      organisation_id: facts.agent.organisationId,
      agent_id: familyIn(facts),
      kind,
      made_at: now,
      audit_id: auditId,
    }));

  const isNoted = (facts: Facts, kind: string, now: Instant): boolean =>
    now - (known.get(`${familyIn(facts)} ${kind}`)?.made_at ?? 0) < REPEAT_WINDOW_MS;
  const remember = (facts: Facts, rows: readonly CallMarkTable[]): void => {
    for (const { kind, made_at, audit_id } of rows) keep(facts, kind, { made_at, audit_id });
  };
  const put = async (facts: Facts, rows: readonly CallMarkTable[]): Promise<void> => {
    if (rows.length > 0) await putCallMarks(store.db, rows);
    remember(facts, rows);
  };

  const withEarlier = async <A extends Ask>(facts: Facts, ask: A, now: Instant): Promise<A> => {
    const { call } = ask;
    if (call === undefined) return ask;
    const { looks, noted } = lookBack(facts, ask, now);
    const family = familyIn(facts);
    const asked = new Set(
      looks.flatMap(({ after }) => {
        const mark = known.get(`${family} ${kindOf(after)}`);
        return mark && now < untilOf(after.withinMs, mark.made_at) ? [] : [kindOf(after)];
      }),
    );
    const place = { organisation_id: facts.agent.organisationId, agent_id: family };
    for (const [kind, mark] of await findCallMarks(store.db, place, [...asked])) keep(facts, kind, mark);
    const earlier = looks.flatMap(({ source, place: at, after }): Earlier[] => {
      const mark = known.get(`${family} ${kindOf(after)}`);
      const until = mark && untilOf(after.withinMs, mark.made_at);
      if (mark && until !== undefined && until > now)
        return [{ source, place: at, auditId: mark.audit_id, madeAt: mark.made_at, until }];
      const unknown = unknownUntil(after.withinMs, restoredAt, now);
      return unknown === undefined ? [] : [{ source, place: at, madeAt: restoredAt ?? 0, until: unknown }];
    });
    const all = [...new Set(noted.map(kindOf))];
    const notes = all.filter((kind) => !isNoted(facts, kind, now));
    return { ...ask, call: { ...call, earlier, kinds: all, notes } };
  };

  return {
    withEarlier,
    withOthers: async (facts, ask, { auditId, now }) => {
      const found = await withEarlier(facts, ask, now);
      const others = found.call?.earlier?.filter((one) => one.auditId !== auditId) ?? [];
      return found.call === undefined ? found : { ...found, call: { ...found.call, earlier: others } };
    },
    note: async (tx, facts, ask, call) => {
      const rows = rowsOf(facts, ask.call?.notes ?? [], call);
      if (rows.length > 0) await putCallMarks(tx, rows);
    },
    noteAgain: async (facts, ask, call) => {
      const of = [...new Set(lookedBackAt(facts, ask, call.now).map(kindOf))];
      const notes = of.filter((kind) => !isNoted(facts, kind, call.now));
      await put(facts, rowsOf(facts, notes, call));
    },
    whileRead: (facts, ask, auditId) => {
      const of = ask.call?.kinds ?? [];
      const again = () =>
        void put(facts, rowsOf(facts, of, { auditId, now: clock() })).catch((error: unknown) =>
          log.error({ err: error, auditId }, 'a call on which look-back rules depend could not be stored again'),
        );
      const timer = setInterval(again, againMs).unref();
      return () => clearInterval(timer);
    },
    noted: (facts, ask, call) => remember(facts, rowsOf(facts, ask.call?.notes ?? [], call)),
    meanwhile: async (facts, ask) => {
      const before = ask.call?.earlier ?? [];
      const again = await withEarlier(facts, ask, clock());
      const found = again.call?.earlier?.find(
        (one) => !before.some(({ source, place }) => source === one.source && place === one.place),
      );
      if (found === undefined) return undefined;
      const rules = found.source === 'guardrail' ? facts.guardrails.rules : (facts.policy?.rules ?? []);
      return {
        reason: found.source === 'guardrail' ? 'denied_by_guardrail' : 'denied_by_policy',
        detail: `${found.source} ${rules[found.place]?.name} applies to a request that was not sent completely: ${describeEarlier(found)}`,
      };
    },
  };
}
