/** A governed request in flight: what was asked, by whom, and the audit row that it fills. */

import type { RecordedDecision } from '../audit/receipt.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Verdict } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Action } from '../wire/action.ts';

export type Call = {
  who: AgentPrincipal;
  action: Action;
  /** The endpoint, in normal form. */
  path: string;
  query: string;
  /** The agent's headers that are sent; what was dropped is listed. */
  headers: Readonly<Record<string, string>>;
  dropped: readonly string[];
  row: AuditRow;
};

/** Notes on the row what was decided, and on what. */
export function noteVerdict(row: AuditRow, verdict: Verdict, { facts }: LoadedFacts): void {
  const decision: RecordedDecision = {
    policy: facts.policy ? { id: facts.policy.id, name: facts.policy.name, version: facts.policy.version } : null,
    guardrails: { version: facts.guardrails.version },
    matched: verdict.matched,
    evaluated: verdict.evaluated,
  };
  row.decision = JSON.stringify(decision);
  row.reason = verdict.reason;
  row.detail = verdict.detail;
  if (verdict.kind === 'deny' && verdict.violating) row.violating = JSON.stringify(verdict.violating);
}
