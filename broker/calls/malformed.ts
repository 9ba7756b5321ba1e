/** A request that is no call: nothing is decided, but that it came is on record, and it counts towards a breaker. */
import { uuidv7 } from '../crypto/ids.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { Action } from '../wire/action.ts';
import { countFailure } from './breakers.ts';
import { beginRow } from './call.ts';
import type { Governor } from './governor.ts';
import type { Outcome } from './outcome.ts';
import type { Recorded } from './record.ts';

/**
 * Records a malformed request of an agent. Of its body goes into the row what is well-formed by itself.
 *
 * @param body as it was parsed; undefined when it could not be
 * @param code what the refusal is, `invalid_request` unless said otherwise
 * @param detail what is wrong, as the agent is told
 */
export async function recordMalformed(
  governor: Governor,
  who: AgentPrincipal,
  request: { body: unknown; code?: 'invalid_request' | 'payload_too_large'; detail: string; correlationId: string },
): Promise<Recorded<Extract<Outcome, { kind: 'invalid' }>>> {
  const { broker, recorder } = governor;
  const row = beginRow(
    who,
    readable(request.body),
    { auditId: uuidv7(broker.clock()), correlationId: request.correlationId },
    broker,
  );
  row.result = 'errored';
  const { code = 'invalid_request' } = request;
  row.reason = code;
  row.detail = request.detail;
  await countFailure(governor, who, 'breaker_api_error', '');
  return await recorder.finish(row, { kind: 'invalid', auditId: row.id, code, detail: request.detail }, false);
}

const Readable = Action.pick({ platform: true, scope: true, method: true, reason: true });

function readable(body: unknown): Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>> {
  if (typeof body !== 'object' || body === null) return {};
  const found = Object.entries(Readable.shape).flatMap(([name, schema]) => {
    const read = schema.safeParse((body as Record<string, unknown>)[name]);
    return read.success && read.data !== undefined ? [[name, read.data]] : [];
  });
  return Object.fromEntries(found);
}
