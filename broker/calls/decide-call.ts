/** Decides a call that is to be made, including whether a standing approval stands in for a hold. */
import { decide } from '../policy/decide.ts';
import type { Ask, Facts, Instant, Verdict } from '../policy/facts.ts';
import type { Call } from './call.ts';
import { repeatOf } from './repeat.ts';
import type { ToolOnFile } from './tool-on-file.ts';

/**
 * Decides the call. The body is compared with standing approvals only when something holds the call, because that needs the whole body.
 *
 * @param spent standing approvals that turned out to be used up or ended meanwhile
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
