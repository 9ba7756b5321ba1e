/** Calls that rules look back at: found before a call is decided, and noted in the transaction of an intent, before its agent can have read an answer. */
import type { Broker, Uses } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import { type Earlier, earlierInWords, NOTED_FOR_MS, unknownUntil, untilOf } from '../policy/earlier.ts';
import type { Ask, Facts, Instant } from '../policy/facts.ts';
import { familyIn, lookBack, lookedBackAt } from '../policy/look-back.ts';
import type { After } from '../policy/rule.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { findCallMarks, putCallMarks } from '../store/call-marks.ts';
import type { Db } from '../store/store.ts';
import type { CallMarkTable } from '../store/tables/rules.ts';
import { withCharges } from './limits.ts';

/** About 10 MB when it is full; what is not in here is asked of the store, or noted once more. */
const REMEMBERED = 50_000;

export type EarlierCalls = {
  /** The ask with the rules that apply for what the agent did before, and with what of this call is to be noted. */
  withEarlier<A extends Ask>(facts: Facts, ask: A, now: Instant): Promise<A>;
  /** The same of a call that is noted itself: what was found is of others. `auditId`: of its row. */
  withOthers<A extends Ask>(facts: Facts, ask: A, call: Noted): Promise<A>;
  /** Notes a call, in the transaction of its intent. `auditId`: of its row. */
  note(tx: Db, facts: Facts, ask: Ask, call: Noted): Promise<void>;
  /** Notes a call of the past again, by what is known of it. */
  noteAgain(facts: Facts, ask: Ask, call: Noted): Promise<void>;
  /** Notes a call again while its answer is read, until what is returned is called. */
  whileRead(facts: Facts, ask: Ask, auditId: string): () => void;
  /** That this is durable. */
  noted(facts: Facts, ask: Ask, call: Noted): void;
  /** Why a call whose body was still on its way when it was decided may not be sent to its end: what its agent did meanwhile could be in it. */
  meanwhile(facts: Facts, ask: Ask): Promise<AccessEnded | undefined>;
};

/** The ask with all that rules look at of the past: what was used of limits, and earlier calls. */
export async function withPast<A extends Ask>(
  { broker, earlierCalls }: Uses<'store'> & { earlierCalls: EarlierCalls },
  facts: Facts,
  ask: A,
  now: Instant,
): Promise<A> {
  return await earlierCalls.withEarlier(facts, await withCharges(broker, facts, ask, now), now);
}

/** As what calls are noted that rules look back at. `text`: says which (compile-rules.ts). */
export const kindOfText = (text: string): string => sha256Hex(text).slice(0, 32);

/** Of which row, and when. */
type Noted = { auditId: string; now: Instant };
type Mark = Pick<CallMarkTable, 'made_at' | 'audit_id'>;

/** `againMs`: after how long a call whose answer is still read is noted again: the time by which a rule applies longer covers what is read until then. */
export function earlierCalls(
  { store, clock, log, keysRestoredAt: restoredAt }: Pick<Broker, 'store' | 'clock' | 'log' | 'keysRestoredAt'>,
  againMs = NOTED_FOR_MS / 2,
): EarlierCalls {
  /** Marks that are durable, by agent and kind. None is ever taken back, so that what is known here is true, and may only be older than what is stored. */
  const known = recentlyUsed<Mark>(REMEMBERED);
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
    now - (known.get(`${familyIn(facts)} ${kind}`)?.made_at ?? 0) < NOTED_FOR_MS;
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
          log.error({ err: error, auditId }, 'a call that rules look back at could not be noted again'),
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
        detail: `${found.source} ${rules[found.place]?.name} applies to what was not sent to its end: ${earlierInWords(found)}`,
      };
    },
  };
}
