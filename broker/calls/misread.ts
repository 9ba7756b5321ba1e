import type { Replay } from '../approvals/replay.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { decideAgent } from '../policy/decide.ts';
import type { Instant } from '../policy/facts.ts';
import type { Action } from '../wire/action.ts';
import { countFailure } from './breakers.ts';
import { decidedBy } from './call.ts';
import type { CallServices } from './call-services.ts';
import { isStrike } from './malformed.ts';
import type { ReadCall } from './read-call.ts';
import { refusal } from './refusal.ts';

/** Returns the outcome of a malformed request; a halt or missing setup of its agent takes precedence. */
export async function misread(
  services: CallServices,
  who: AgentPrincipal,
  action: Action,
  record: CallRecord,
  loaded: LoadedFacts,
  now: Instant,
  { code, detail }: Extract<ReadCall, { ok: false }>,
  replay: Replay | undefined,
): Promise<Outcome> {
  const stopped = decideAgent(loaded.facts, now);
  if (stopped) return refusal({ ...record, decided: decidedBy(stopped, loaded) }, stopped);
  if (!replay && isStrike(code)) await countFailure(services, who, 'breaker_api_error', action.platform);
  return { kind: 'invalid', code, detail, call: record };
}
