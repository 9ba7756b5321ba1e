/** The answer to an agent whose access ended during the call; the audit row holds the real outcome. */
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import { type AccessEnded, isLentEnded } from '../policy/access-ended.ts';

/** Returns the refusal that such a call would get now. `what`: what became of the real call, as the end of a sentence. */
export function endedOutcome(call: CallRecord, { reason: ended, detail, halt }: AccessEnded, what: string): Outcome {
  if (ended === 'platform_not_connected') return { kind: 'not_connected', call };
  // The agent itself is still active: the credential it used, or was lent, is no longer valid.
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
