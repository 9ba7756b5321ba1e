/** Rules in the body of an owner's request. */
import { z } from 'zod';
import { type ReadRules, readRules, shapeProblems } from '../config-file/rules.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { listPlatforms } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';
import type { MalformedBody } from './route.ts';

/** Rules as they are stored: what they were given as, in the form of governance.yaml. */
export const Rules = z.array(z.record(z.string(), z.unknown())).describe('as in governance.yaml');
export const Warnings = z.array(z.string()).describe('what is allowed, and may not be what was meant');

/** Whoever changes what another has changed meanwhile is told so, if they say which version they saw. */
export const SeenVersion = z
  .int()
  .min(0)
  .optional()
  .describe('the version that was changed to these; when another is in force by now, nothing is changed');

/** @throws Refusal conflict */
export function refuseOtherVersion(seen: number | undefined, inForce: number): void {
  if (seen !== undefined && seen !== inForce)
    throw new Refusal('conflict', `Version ${inForce} is in force, not ${seen}: load it, and change that.`, {
      extra: { version: inForce },
    });
}

const MOST_SAID = 3;
/** Members of bodies that hold rules. */
const RULES = new Set<PropertyKey>(['rules', 'guardrails', 'policy_rules']);

function refuse(code: 'invalid_governance' | 'invalid_request', problems: readonly string[]): never {
  const more = problems.length > MOST_SAID ? ` And ${problems.length - MOST_SAID} more.` : '';
  const said = `${problems.slice(0, MOST_SAID).join(' ')}${more}`;
  const detail = code === 'invalid_governance' ? `The rules cannot be taken; nothing was changed. ${said}` : said;
  throw new Refusal(code, detail, { extra: { problems } });
}

/** Says of a body with rules everything that is wrong with it, each problem by its path. For `onMalformed`. */
export const sayWhatIsWrong =
  (schema: z.ZodType) =>
  async (_context: unknown, { body, detail, issues }: MalformedBody): Promise<Reply> => {
    if (!issues) throw new Refusal('invalid_request', detail);
    const inRules = issues.some(({ path }) => path[0] !== undefined && RULES.has(path[0]));
    return refuse(inRules ? 'invalid_governance' : 'invalid_request', shapeProblems(issues, body, schema));
  };

/** The organisation's platforms, which rules may speak of. */
export async function knownPlatforms(db: Db, organisationId: string): Promise<Map<string, Manifest>> {
  const stored = await listPlatforms(db, organisationId);
  return new Map(stored.map((one) => [one.platform_id, JSON.parse(one.manifest) as Manifest]));
}

/** Rules as they are stored, and warnings. @throws Refusal invalid_governance */
export function takeRules(...given: Parameters<typeof readRules>): Extract<ReadRules, { ok: true }> {
  const read = readRules(...given);
  return read.ok ? read : refuse('invalid_governance', read.problems);
}
