/** Runs a call from request to outcome (specification, Governed call), and decides again when its facts changed meanwhile. */
import type { Replay } from '../approvals/replay.ts';
import type { CallRecord } from '../audit/outcome.ts';
import { piiOfRequest } from '../audit/pii.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { type Instant, UnreadBody } from '../policy/facts.ts';
import { ConcurrentUpdate } from '../store/store-fault.ts';
import { CallWatch } from '../telemetry/call-watch.ts';
import type { Action } from '../wire/action.ts';
import { type Acted, type Attempt, attemptCall } from './attempt.ts';
import { beginRecord, holderOf } from './call.ts';
import type { CallServices } from './call-services.ts';
import type { EntryPointInput } from './entry-point-input.ts';
import { gitRecord } from './git-request.ts';
import { reloadPrincipal } from './reload.ts';
import { callAttributes } from './trace-attributes.ts';

/** `now`: the time as of which the call is decided. */
export type ActOptions = EntryPointInput & {
  correlationId: string;
  auditId?: string;
  now?: Instant;
  replay?: Replay;
};

/** Attempts before a call fails because its facts changed concurrently each time. */
const MAX_ATTEMPTS = 10;

/**
 * Decides the call, and holds, refuses or makes it. Every outcome is recorded before it is returned. Throws AuditUnavailable when it cannot
 * be recorded, and ConcurrentUpdate when the facts changed during each of MAX_ATTEMPTS attempts.
 */
export async function act(
  services: CallServices,
  who: AgentPrincipal,
  action: Action,
  { correlationId, now = services.broker.clock(), auditId = uuidv7(now), replay, ...input }: ActOptions,
): Promise<Acted> {
  const begun = beginRecord(who, action, { auditId, correlationId, now }, services.broker);
  const watch = new CallWatch(services.broker, input.traceparent);
  const record: CallRecord = {
    ...begun,
    traceId: watch.traceId,
    pii: piiOfRequest(action, input.git?.body !== undefined || input.raw?.judged instanceof UnreadBody),
    git: input.git && gitRecord(input.git),
    approval: replay && { id: replay.approvalId, provenance: replay.provenance },
  };
  const lease = input.lease ?? services.budget.lease(holderOf(who));
  let attempt: Attempt = { ...input, who, now, asked: action, record, replay, watch, lease, spent: new Set() };
  let ended: Acted | undefined;
  try {
    for (let made = 0; made < MAX_ATTEMPTS; made++) {
      const done = await attemptCall(services, attempt);
      if (done !== 'facts_changed') {
        ended = done;
        return done;
      }
      attempt = {
        ...attempt,
        who: await reloadPrincipal(services, who, action.platform),
        now: services.broker.clock(),
      };
    }
  } finally {
    const outcome = ended === 'joined' ? undefined : ended?.value;
    watch.end(() => (outcome ? callAttributes(outcome) : {}));
    lease.endCall();
    if (input.lease === undefined) lease.release();
  }
  throw new ConcurrentUpdate('the facts on which this call is decided changed during each attempt to decide it');
}
