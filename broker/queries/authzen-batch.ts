/** Batch evaluation (OpenID AuthZEN Authorization API 1.0, section 7). */

import type { z } from 'zod';
import type { FactsLoader } from '../facts/facts.ts';
import type { Instant } from '../policy/facts.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import { type Decision, evaluate, type SubjectReader } from './authzen.ts';
import { Evaluation, type Evaluations } from './authzen-request.ts';

/** Error texts of refused items: those of the single evaluation. */
export type ItemRefusals = { notYours: string; malformed(error: z.ZodError): string };

/**
 * Evaluates the items in order, as far as the semantic requires. An item that is invalid, or about an agent that the requester may not ask about, gets
 * `decision: false` and the status that it would have by itself.
 */
export async function evaluateAll(
  services: { loadFacts: FactsLoader },
  read: SubjectReader,
  { evaluations = [], options, ...defaults }: Evaluations,
  now: Instant,
  refusals: ItemRefusals,
): Promise<Decision[]> {
  const readSubject = eachOnce(read);
  const answer = async (item: unknown): Promise<Decision> => {
    const asked = Evaluation.safeParse(isObject(item) ? withDefaults(item, defaults) : item);
    if (!asked.success) return refused(400, refusals.malformed(asked.error));
    return (await evaluate(services, readSubject, asked.data, now)) ?? refused(401, refusals.notYours);
  };
  const semantic = options?.evaluations_semantic ?? 'execute_all';
  if (semantic === 'execute_all') return await Promise.all(evaluations.map(answer));
  const last = semantic === 'permit_on_first_permit';
  const answers: Decision[] = [];
  for (const item of evaluations) {
    const answered = await answer(item);
    answers.push(answered);
    if (answered.decision === last) break;
  }
  return answers;
}

/** Required members of each; `properties` is ignored. */
const REQUIRED = { subject: ['type', 'id'], action: ['name'], resource: ['type', 'id'] } as const;

/**
 * Applies the defaults: an item's own member replaces the default as a whole, except for required members of it that are missing, which come from the
 * default, so that a list of platforms needs the resource type only once (the working group's certification scenario, Batch with default value merging).
 */
function withDefaults(item: object, defaults: Pick<Evaluations, keyof typeof REQUIRED | 'context'>): object {
  const asked: Record<string, unknown> = { ...defaults, ...item };
  for (const [name, required] of Object.entries(REQUIRED)) {
    const [own, beside] = [asked[name], defaults[name as keyof typeof REQUIRED]];
    if (!isObject(own) || beside === undefined || own === beside) continue;
    const lent = Object.entries(beside).filter(([member]) => (required as readonly string[]).includes(member));
    asked[name] = { ...Object.fromEntries(lent), ...own };
  }
  return asked;
}

/** Shares one read among items about the same agent and platform, so that they are consistent. */
function eachOnce(read: SubjectReader): SubjectReader {
  const known = new Map<string, Promise<readonly FactsRow[] | undefined>>();
  return (subjectId, platform) => {
    const name = `${subjectId} ${platform}`;
    const found = known.get(name) ?? read(subjectId, platform);
    known.set(name, found);
    return found;
  };
}

const refused = (status: number, message: string): Decision => ({
  decision: false,
  reason: 'denied',
  context: { reason: 'denied', error: { status, message } },
});

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
