/** Validates rules that an owner submits like those of a governance file. */
import { approversWarning } from '../../config-file/approvers-warning.ts';
import { whyNoButtons } from '../../config-file/decide-in.ts';
import { readRules } from '../../config-file/rules.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import type { RuleSource } from '../../policy/facts.ts';
import { listChannels } from '../../store/notice-channels.ts';
import { listOwners } from '../../store/organisations.ts';
import { DECIDING } from '../../store/passkeys.ts';
import type { Db } from '../../store/store.ts';
import { ChangeRefused } from '../refused.ts';

/** Rules of the right shape; problems name them by the member `at`. */
export type SubmittedRules = { kind: 'policy' | 'guardrail'; at: string; rules: Parameters<typeof readRules>[0] };

/** Returns the rules in stored form, and warnings about them. Throws ChangeRefused `invalid_governance` with all problems. */
export async function checkRules(
  db: Db,
  organisationId: string,
  { kind, at, rules }: SubmittedRules,
): Promise<{ rules: RuleSource[]; warnings: string[] }> {
  const read = readRules(rules, kind, at, await loadManifests(db, organisationId));
  if (!read.ok) throw rulesRefused('invalid_governance', read.problems);
  const deciders = (await listOwners(db, organisationId)).filter(({ role }) => DECIDING.includes(role)).length;
  const unapprovable = read.rules.flatMap((rule, index) => {
    const warning = approversWarning(rule, deciders);
    return warning === undefined ? [] : [`${at}[${index}].approvers: ${warning}`];
  });
  const kinds = new Map((await listChannels(db, organisationId)).map((channel) => [channel.name, channel.kind]));
  const withoutButtons = read.rules.flatMap(({ decide_in: names = [] }, index) =>
    names.flatMap((name, place) => {
      const why = whyNoButtons(kinds.get(name));
      return why === undefined
        ? []
        : [`${at}[${index}].decide_in[${place}]: "${name}": ${why}. No button decides there.`];
    }),
  );
  return { rules: read.rules, warnings: [...read.warnings, ...unapprovable, ...withoutButtons] };
}

const MAX_NAMED = 3;

/** Builds a refusal whose text names the first problems, and which holds all of them. */
export function rulesRefused(
  code: 'invalid_governance' | 'invalid_request',
  problems: readonly string[],
): ChangeRefused {
  const more = problems.length > MAX_NAMED ? ` And ${problems.length - MAX_NAMED} more.` : '';
  const said = `${problems.slice(0, MAX_NAMED).join(' ')}${more}`;
  const detail = code === 'invalid_governance' ? `The rules are not valid; nothing was changed. ${said}` : said;
  return new ChangeRefused(code, detail, { problems });
}

/**
 * Optimistic locking: refuses a change based on another version than the one in force. `seen` undefined: not checked.
 *
 * @throws ChangeRefused conflict
 */
export function refuseOtherVersion(seen: number | undefined, inForce: number): void {
  if (seen !== undefined && seen !== inForce)
    throw new ChangeRefused(
      'conflict',
      `Version ${inForce} is in force, not ${seen}: load it, and change that version.`,
      {
        version: inForce,
      },
    );
}
