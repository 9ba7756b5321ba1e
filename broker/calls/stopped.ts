/** A malformed call of an agent that is halted, or not set up yet: it is told that first. */

import type { Outcome } from '../audit/outcome.ts';
import type { Recorded, Recorder } from '../audit/record.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Verdict } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import { noteVerdict } from './call.ts';

export type Stopped = Extract<Outcome, { kind: 'denied' | 'inactive' }>;

/** Completes the row of the call with the verdict of `decideAgent`. Throws AuditUnavailable. */
export async function refuseStopped(
  { recorder }: { recorder: Recorder },
  row: AuditRow,
  loaded: LoadedFacts,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<Recorded<Stopped>> {
  noteVerdict(row, verdict, loaded);
  row.result = 'denied';
  const outcome: Stopped =
    verdict.reason === 'agent_inactive'
      ? { kind: 'inactive', auditId: row.id, detail: verdict.detail }
      : { kind: 'denied', auditId: row.id, verdict };
  return await recorder.finish(row, outcome, false);
}
