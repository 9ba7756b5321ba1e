/** A request that is no call: nothing of it is decided, but that it came is on record, and what is wrong with it counts towards a breaker. */
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Changing } from '../audit/record-change.ts';
import type { Recorded } from '../audit/recorder.ts';
import { rowOf } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { decideAgent } from '../policy/decide.ts';
import { Action } from '../wire/action.ts';
import { countFailure } from './breakers.ts';
import { beginRecord, decidedBy } from './call.ts';
import { refusal } from './refusal.ts';

/**
 * `body`: as it was parsed; undefined when it could not be. `path`: the endpoint in normal form, where the door has checked it.
 * `detail`: what is wrong, as the agent is told.
 */
export type Malformed = {
  body: unknown;
  path?: string;
  code?:
    | 'invalid_request'
    | 'not_found'
    | 'method_not_allowed'
    | 'payload_too_large'
    | 'git_request_too_large'
    | 'idempotency_outcome_unknown'
    | 'idempotency_key_reused'
    | 'request_cut'
    | 'too_many_calls';
  detail: string;
};

/** A network that fails, and a broker that is busy, are no fault of the agent; a body that is longer than is taken, another method, a key of before a restore, and one of another call, are well-formed. */
const NO_FAULT = new Set<string>([
  'request_cut',
  'too_many_calls',
  'payload_too_large',
  'git_request_too_large',
  'idempotency_outcome_unknown',
  'idempotency_key_reused',
  'method_not_allowed',
]);

/** Whether a request that is no call counts towards the breaker of the agent. */
export const isStrike = (code: string): boolean => !NO_FAULT.has(code);

/**
 * Records a malformed request of an agent. Of its body goes into the row what is well-formed by itself. A halted agent is
 * refused as such, whatever it sent, and the request does not count. Throws AuditUnavailable.
 */
export async function recordMalformed(
  services: Changing & { loadFacts: FactsLoader },
  who: AgentPrincipal,
  { body, path, code = 'invalid_request', detail }: Malformed,
  correlationId: string,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = services;
  const now = broker.clock();
  const asked = readableParts(body);
  const begun = beginRecord(who, asked, { auditId: uuidv7(now), correlationId, now }, broker);
  const call = path === undefined ? begun : { ...begun, path };
  const loaded = await services.loadFacts(who.rows, asked.platform ?? '', now);
  const stopped = decideAgent(loaded.facts, now);
  if (!stopped && isStrike(code)) await countFailure(services, who, 'breaker_api_error', '');
  const outcome: Outcome = stopped
    ? refusal({ ...call, decided: decidedBy(stopped, loaded) }, stopped)
    : notRead(code, detail, call);
  return await recorder.record({ row: rowOf(outcome), value: outcome });
}

const notRead = (code: NonNullable<Malformed['code']>, detail: string, call: CallRecord): Outcome =>
  code === 'too_many_calls'
    ? { kind: code, call }
    : code === 'request_cut'
      ? { kind: code, detail, call }
      : { kind: 'invalid', code, detail, call };

const Readable = Action.pick({ platform: true, scope: true, method: true, reason: true });

/** What is well-formed by itself of a body that is no call. */
function readableParts(body: unknown): Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>> {
  if (typeof body !== 'object' || body === null) return {};
  const found = Object.entries(Readable.shape).flatMap(([name, schema]) => {
    const read = schema.safeParse((body as Record<string, unknown>)[name]);
    return read.success && read.data !== undefined ? [[name, read.data]] : [];
  });
  return Object.fromEntries(found);
}
