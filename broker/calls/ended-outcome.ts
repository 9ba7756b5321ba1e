/** What an agent is told of a call that it could not begin any more: not what is on record. */
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import { type AccessEnded, isLentEnded } from '../policy/access-ended.ts';

/** The refusal that such a call would get now. `what`: what became of the one that was made, as the end of a sentence. */
export function endedOutcome(call: CallRecord, { reason: ended, detail, halt }: AccessEnded, what: string): Outcome {
  if (ended === 'platform_not_connected') return { kind: 'not_connected', call };
  // Nothing of the agent ended: what it came with, or was lent, permits nothing any more.
  const reason = isLentEnded(ended) ? 'no_permission_record' : ended;
  const verdict = {
    kind: 'deny',
    reason,
    detail: `${detail}${what}`,
    evaluated: [],
    notEvaluated: [],
    matched: [],
    conditional: false,
    ...(halt && { halt }),
  } as const;
  return { kind: 'denied', verdict, call };
}
