/** Handles malformed requests: they are not decided, but recorded, and most count towards a breaker of the agent. */
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
 * `body`: as parsed; undefined when it could not be parsed. `path`: the normalised endpoint, when the entry point has checked it. `detail`:
 * what is wrong, for the agent.
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

/**
 * Codes that do not count as a strike: network failures and a busy broker are not the agent's fault; a body over the limit, another method,
 * a key from before a restore, and a key of another call are well-formed requests.
 */
const NOT_STRIKES = new Set<string>([
  'request_cut',
  'too_many_calls',
  'payload_too_large',
  'git_request_too_large',
  'idempotency_outcome_unknown',
  'idempotency_key_reused',
  'method_not_allowed',
]);

/** Whether a rejected request counts towards the agent's breaker. */
export const isStrike = (code: string): boolean => !NOT_STRIKES.has(code);

/**
 * Records a malformed request of an agent, with the members of its body that are well-formed by themselves. A halted agent gets its usual
 * refusal, and the request is not a strike. Throws AuditUnavailable.
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
  const loaded = await services.loadFacts(who.rows, now);
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

/** Returns the well-formed members of a malformed body. */
function readableParts(body: unknown): Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>> {
  if (typeof body !== 'object' || body === null) return {};
  const found = Object.entries(Readable.shape).flatMap(([name, schema]) => {
    const read = schema.safeParse((body as Record<string, unknown>)[name]);
    return read.success && read.data !== undefined ? [[name, read.data]] : [];
  });
  return Object.fromEntries(found);
}
