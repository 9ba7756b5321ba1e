/** A call that was stopped because its agent lost the access: what the agent is told of it. */
import { platformEffectOf } from '../audit/effect.ts';
import type { Outcome } from '../audit/outcome.ts';
import { isLentEnded } from '../policy/access-ended.ts';

/** The outcome that the agent is answered: what is on record, or where it may not read that any more, the refusal that it would get now. */
export function toldOutcome(outcome: Outcome): Outcome {
  const { call } = outcome;
  if (call.accessEnded === undefined) return outcome;
  const { reason: ended, detail, halt } = call.accessEnded;
  if (ended === 'platform_not_connected') return { kind: 'not_connected', call };
  // Nothing of the agent ended: what it came with, or was lent, permits nothing any more.
  const reason = isLentEnded(ended) ? 'no_permission_record' : ended;
  const mayBeMade = platformEffectOf(outcome) !== 'none' ? ', and may have been made' : '';
  const verdict = {
    kind: 'deny',
    reason,
    detail: `${detail}; the call was under way${mayBeMade}`,
    evaluated: [],
    notEvaluated: [],
    matched: [],
    conditional: false,
    ...(halt && { halt }),
  } as const;
  return { kind: 'denied', verdict, call };
}
