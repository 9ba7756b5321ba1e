/** After the upstream: the final row, the breakers, and what the agent may see. */

import type { Outcome } from '../audit/outcome.ts';
import { type PiiFlags, piiKinds } from '../audit/pii.ts';
import type { Recorded, Recording } from '../audit/record.ts';
import type { Changing } from '../audit/record-change.ts';
import { noteFlags } from '../audit/row.ts';
import type { Broker } from '../broker.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import { setConnectionStatus } from '../store/connections.ts';
import { closeByTrial, countUpstreamFailure, type Trial } from './breakers.ts';
import type { Call } from './call.ts';
import type { Concluded } from './forward.ts';
import type { FreshRefusals } from './fresh-refusals.ts';

type Answered = Extract<Concluded, { kind: 'answer' }>;

/** Records what became of a call that was forwarded, and makes its outcome. `trials`: those that the call was. */
export async function conclude(
  services: Changing & { freshRefusals: FreshRefusals },
  call: Call,
  trials: readonly Trial[],
  connection: ConnectionFacts,
  forwarded: Concluded,
): Promise<Recorded<Outcome>> {
  switch (forwarded.kind) {
    case 'answer':
      return await concludeAnswer(services, call, trials, connection, forwarded);
    case 'unreachable':
      return await concludeUnreachable(services, call, trials, forwarded);
    case 'refused_locally':
      return await concludeRefused(services, call, connection, forwarded);
  }
}

function notesOf(call: Call): Record<string, unknown> {
  return call.dropped.length > 0 ? { dropped_headers: call.dropped } : {};
}

/** What goes with an outcome but must never keep it from being recorded. */
async function aside(broker: Broker, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    broker.log.error({ err: error }, 'could not be noted beside the outcome of a call');
  }
}

async function concludeUnreachable(
  services: Changing,
  call: Call,
  trials: readonly Trial[],
  { code, detail, sent }: Extract<Concluded, { kind: 'unreachable' }>,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = services;
  const { row } = call;
  row.result = 'errored';
  row.reason = 'upstream_unreachable';
  row.detail = detail;
  noteFlags(row, { ...notesOf(call), code, outcome: sent ? 'unknown' : 'not_sent' });
  await aside(broker, () => countUpstreamFailure(services, call.who, call.action.platform, trials));
  return await recorder.finish(row, { kind: 'unreachable', auditId: row.id, code, detail, sent }, true);
}

async function concludeRefused(
  { broker, recorder }: Recording,
  call: Call,
  { id: connectionId }: ConnectionFacts,
  { error, detail }: Extract<Concluded, { kind: 'refused_locally' }>,
): Promise<Recorded<Outcome>> {
  const { row } = call;
  row.result = 'errored';
  row.detail = detail;
  if (error === 'credential_malformed') {
    row.reason = error;
    // A mark for the owner: nothing was sent, so the platform did not refuse it.
    const place = { organisationId: row.organisation_id, id: connectionId };
    await aside(broker, () => setConnectionStatus(broker.store.db, place, 'reauth_needed'));
    const outcome = { kind: 'reauth_needed' as const, auditId: row.id, connectionId, malformed: true as const };
    return await recorder.finish(row, outcome, false);
  }
  if (error === 'credential_over') {
    row.reason = 'platform_reauth_needed';
    return await recorder.finish(row, { kind: 'reauth_needed', auditId: row.id, connectionId }, false);
  }
  const code = error === 'endpoint_refused' ? 'invalid_endpoint' : 'invalid_request';
  row.reason = code;
  return await recorder.finish(row, { kind: 'invalid', auditId: row.id, code, detail }, false);
}

async function concludeAnswer(
  services: Changing & { freshRefusals: FreshRefusals },
  call: Call,
  trials: readonly Trial[],
  connection: ConnectionFacts,
  { status, read, lapsed, justIssued }: Answered,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = services;
  const { row, who, action } = call;
  const notes = notesOf(call);
  row.upstream_status = status;
  // What is withheld, or no text, is not looked at.
  if (read.kind === 'data' && !read.encoding)
    row.pii = JSON.stringify({ ...(JSON.parse(row.pii!) as PiiFlags), response: piiKinds(read.data) });
  const place = { organisationId: row.organisation_id, id: connection.id };
  const isUnauthorized = status === 401;
  // A token that was issued just now is good: what was refused is this call, unless others are refused, too.
  if (
    isUnauthorized &&
    !(justIssued && !services.freshRefusals.note(connection.id, `${action.method} ${call.path}`, broker.clock()))
  ) {
    row.result = 'errored';
    row.reason = 'platform_reauth_needed';
    noteFlags(row, notes);
    // A mark for the owner, not a switch: one endpoint's 401 must not cut off the calls that still work.
    await aside(broker, () => setConnectionStatus(broker.store.db, place, 'reauth_needed'));
    return await recorder.finish(row, { kind: 'reauth_needed', auditId: row.id, connectionId: connection.id }, true);
  }
  if (status >= 500) await aside(broker, () => countUpstreamFailure(services, who, action.platform, trials));
  else {
    if (!isUnauthorized) services.freshRefusals.forget(connection.id);
    if (!isUnauthorized && connection.status === 'reauth_needed' && !lapsed)
      await aside(broker, () => setConnectionStatus(broker.store.db, place, 'active'));
    if (trials.length > 0) await aside(broker, () => closeByTrial(services, trials));
  }
  if (read.kind === 'blocked') {
    row.result = 'blocked';
    row.reason = 'upstream_response_blocked';
    row.detail = 'The answer held the credential in a form in which it cannot be taken out.';
    noteFlags(row, { ...notes, redacted: true });
    return await recorder.finish(row, { kind: 'response_blocked', auditId: row.id, detail: row.detail }, true);
  }
  if (read.redacted) notes.redacted = true;
  if (read.encoding) notes.encoding = read.encoding;
  noteFlags(row, notes);
  row.result = 'allowed';
  if (read.location !== undefined) notes.upstream_location = read.location;
  if (read.headers !== undefined) notes.upstream_headers = read.headers;
  return await recorder.finish(
    row,
    {
      kind: 'answered',
      auditId: row.id,
      dataJson: read.data,
      upstreamStatus: status,
      ...(read.contentType !== undefined && { contentType: read.contentType }),
      bytes: read.bytes,
      notes,
    },
    true,
  );
}
