/** The decision on a call that is to be made: whether a standing approval stands in for what holds it, too. */
import { decide } from '../policy/decide.ts';
import type { Ask, Facts, Instant, Verdict } from '../policy/facts.ts';
import type { Call } from './call.ts';
import { repeatOf } from './repeat.ts';
import type { ToolOnFile } from './tool-on-file.ts';

/**
 * What is sent is looked at only where something holds the call, because that takes its whole body.
 *
 * @param spent standing approvals that were found used up, or ended, meanwhile
 */
export function decideCall(
  facts: Facts,
  call: Call,
  { ask, onFile, spent }: { ask: Ask; onFile: ToolOnFile | undefined; spent: ReadonlySet<string> },
  now: Instant,
): { verdict: Verdict; ask: Ask } {
  const verdict = decide(facts, ask, now);
  const repeat = verdict.kind === 'hold' ? repeatOf(call, onFile) : undefined;
  if (!repeat) return { verdict, ask };
  const whole = { ...ask, repeat };
  const standing = facts.standing?.filter(({ id }) => !spent.has(id)) ?? [];
  return { verdict: decide({ ...facts, standing }, whole, now), ask: whole };
}
