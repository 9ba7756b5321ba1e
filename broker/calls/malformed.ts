/** A request that is no call: nothing of it is decided, but that it came is on record, and it counts towards a breaker. */

import type { Outcome } from '../audit/outcome.ts';
import type { Recorded } from '../audit/record.ts';
import type { Changing } from '../audit/record-change.ts';
import { beginRow } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { decideAgent } from '../policy/decide.ts';
import { Action } from '../wire/action.ts';
import { countFailure } from './breakers.ts';
import { refuseStopped } from './stopped.ts';

/**
 * Records a malformed request of an agent. Of its body goes into the row what is well-formed by itself. A halted agent is
 * refused as such, whatever it sent, and the request does not count.
 *
 * @param body as it was parsed; undefined when it could not be
 * @param code what the refusal is, `invalid_request` unless said otherwise
 * @param detail what is wrong, as the agent is told
 */
export async function recordMalformed(
  services: Changing & { loadFacts: FactsLoader },
  who: AgentPrincipal,
  request: { body: unknown; code?: 'invalid_request' | 'payload_too_large'; detail: string; correlationId: string },
): Promise<Recorded<Extract<Outcome, { kind: 'invalid' | 'denied' | 'inactive' }>>> {
  const { broker, recorder } = services;
  const now = broker.clock();
  const asked = readableParts(request.body);
  const row = beginRow(who, asked, { auditId: uuidv7(now), correlationId: request.correlationId }, broker);
  const loaded = await services.loadFacts(who.rows, asked.platform ?? '', now);
  const stopped = decideAgent(loaded.facts, now);
  if (stopped) return await refuseStopped(services, row, loaded, stopped);
  row.result = 'errored';
  const { code = 'invalid_request' } = request;
  row.reason = code;
  row.detail = request.detail;
  await countFailure(services, who, 'breaker_api_error', '');
  return await recorder.finish(row, { kind: 'invalid', auditId: row.id, code, detail: request.detail }, false);
}

const Readable = Action.pick({ platform: true, scope: true, method: true, reason: true });

/** What is well-formed by itself of a body that is no call. */
export function readableParts(body: unknown): Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>> {
  if (typeof body !== 'object' || body === null) return {};
  const found = Object.entries(Readable.shape).flatMap(([name, schema]) => {
    const read = schema.safeParse((body as Record<string, unknown>)[name]);
    return read.success && read.data !== undefined ? [[name, read.data]] : [];
  });
  return Object.fromEntries(found);
}
