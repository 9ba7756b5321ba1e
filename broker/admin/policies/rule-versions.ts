/** Versions of rules for owners: their content, and their authors. */
import { z } from 'zod';
import { AuditFlags, NotedChange, readFlagsAs } from '../../audit/audit-flags.ts';
import type { RuleSource } from '../../policy/facts.ts';
import { describeRule } from '../../policy/rules/describe.ts';
import type { Db } from '../../store/store.ts';
import { readStoredRules } from '../../store/stored-json.ts';
import { findVersionEvents } from '../../store/version-events.ts';

/** The author of a version: an owner's id, or `operator`; how it was changed; and the audit row of the change. */
export type MadeBy = { by: string; how: string; auditId: string };
/** `words`: a description of each rule. `madeBy` null: no author is on record, as for rules that came with the organisation. */
export type RuleVersion = {
  version: number;
  created_at: number;
  rules: RuleSource[];
  words: string[];
  madeBy: MadeBy | null;
};

type Stored = { version: number; rules: string; created_at: number };
/** The policy whose rules they are, or the guardrails. */
type RulesOf = { policy: { id: string; name: string } } | 'guardrails';

export const describeRules = (rules: readonly RuleSource[]): string[] => rules.map(describeRule);

/** Parses stored versions, and finds the author of each in the audit rows around its time. */
export async function readVersions(
  db: Db,
  organisationId: string,
  whose: RulesOf,
  found: readonly Stored[],
): Promise<RuleVersion[]> {
  const versions: RuleVersion[] = [];
  for (const { version, rules: text, created_at } of found) {
    const what = whose === 'guardrails' ? 'the guardrails' : `policy ${whose.policy.id}`;
    const rules = readStoredRules(text, `rules of ${what} version ${version}`);
    const madeBy = await findMaker(db, organisationId, whose, { version, created_at });
    versions.push({ version, created_at, rules, words: describeRules(rules), madeBy });
  }
  return versions;
}

/** Returns the `before` parameter of the next page; null: this was the last one. */
export function nextOf(versions: readonly { version: number }[], limit: number): number | null {
  const last = versions.length === limit ? versions.at(-1) : undefined;
  return last && last.version > 1 ? last.version : null;
}

const Versioned = z.object({ version: z.int() });
const Noted = AuditFlags.extend({
  change: NotedChange.extend({
    policy: Versioned.extend({ id: z.string() }).optional(),
    guardrails: Versioned.optional(),
    changes: z.array(z.string()).optional(),
  }),
});

/** Whether a line such as `create policy careful` or `update guardrails guardrails` is about these rules. */
const isLineOf = (line: string, whose: RulesOf): boolean =>
  whose === 'guardrails' ? /^\w+ guardrails /.test(line) : line.replace(/^\w+ /, '') === `policy ${whose.policy.name}`;

async function findMaker(
  db: Db,
  organisationId: string,
  whose: RulesOf,
  { version, created_at }: Pick<Stored, 'version' | 'created_at'>,
): Promise<MadeBy | null> {
  for (const row of await findVersionEvents(db, organisationId, created_at)) {
    if (row.flags === null) continue;
    const { change } = readFlagsAs(Noted, row);
    const noted = whose === 'guardrails' ? change.guardrails : change.policy;
    const isThis = noted?.version === version && (whose === 'guardrails' || change.policy?.id === whose.policy.id);
    if (isThis || change.changes?.some((line) => isLineOf(line, whose)))
      return { by: change.by, how: change.how, auditId: row.id };
  }
  return null;
}
