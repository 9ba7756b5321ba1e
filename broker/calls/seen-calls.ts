/** Recorded calls that look-back rules depend on, for judging past calls by rules that were not in force then. */
import { type Earlier, untilOf } from '../policy/earlier.ts';
import type { Ask, Facts, Instant } from '../policy/facts.ts';
import { familyIn, lookBack, lookBackRules } from '../policy/look-back.ts';
import type { After } from '../policy/rules/rule.ts';
import { questionOf, selects } from '../policy/rules/selection.ts';

type Seen = { at: Instant; auditId: string };
/** Calls of one kind by one agent's family, newest first. `unsure`: the row does not say whether the call is of this kind. */
type Kind = { sure: Seen[]; unsure: Instant[] };

export type SeenCalls = {
  /** Notes a call that was made; called from newer to older calls. `rules`: all rules that may look back at it, in force or proposed. */
  note(rules: readonly Facts[], ask: Ask, call: Seen): void;
  /** Returns the ask with the look-back rules that apply because of noted calls; `since`: all calls from then on were noted. */
  withEarlier<A extends Ask>(facts: Facts, ask: A, at: Instant, since: Instant): A;
};

export function seenCalls(): SeenCalls {
  const kinds = new Map<string, Kind>();
  const kindOf = (facts: Facts, { text }: After): Kind => {
    const key = `${familyIn(facts)} ${text}`;
    const kind = kinds.get(key) ?? { sure: [], unsure: [] };
    kinds.set(key, kind);
    return kind;
  };
  return {
    note: (rules, ask, { at, auditId }) => {
      const noted = new Set<Kind>();
      for (const facts of rules) {
        const question = questionOf(facts, ask, at);
        for (const { after } of lookBackRules(facts)) {
          const kind = kindOf(facts, after);
          // Several rules, or both the current and the proposed ones, may look back at the same kind.
          if (noted.has(kind)) continue;
          noted.add(kind);
          const matches = [question, ...question.others].map((one) => selects(after.made, one));
          if (matches.some((match) => match === 'yes' || typeof match === 'object')) kind.sure.push({ at, auditId });
          else if (matches.includes('depends')) kind.unsure.push(at);
        }
      }
    },
    withEarlier: (facts, ask, at, since) => {
      const { call } = ask;
      if (call === undefined) return ask;
      const earlier: Earlier[] = [];
      const untold: Pick<Earlier, 'source' | 'place'>[] = [];
      for (const { source, place, after } of lookBack(facts, ask, at).looks) {
        const { sure, unsure } = kindOf(facts, after);
        const made = firstBefore(sure, at, (one) => one.at);
        const unknown = firstBefore(unsure, at, (one) => one);
        if (made && at < untilOf(after.withinMs, made.at)) {
          const { at: madeAt, auditId } = made;
          earlier.push({ source, place, auditId, madeAt, until: untilOf(after.withinMs, madeAt) });
        } else if (
          (unknown !== undefined && at < untilOf(after.withinMs, unknown)) ||
          at < untilOf(after.withinMs, since)
        )
          untold.push({ source, place });
      }
      return { ...ask, call: { ...call, earlier, untold } };
    },
  };
}

/** The newest entry before this moment, of a list sorted newest first. */
function firstBefore<One>(list: readonly One[], at: Instant, atOf: (one: One) => Instant): One | undefined {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (atOf(list[middle] as One) < at) to = middle;
    else from = middle + 1;
  }
  return list[from];
}
