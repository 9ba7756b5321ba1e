/** The evidence of a call: its row, and a receipt that anyone can verify with the published keys alone. */
import { compactVerify, createLocalJWKSet } from 'jose';
import { expect } from 'vitest';
import { receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { type Answer, send, type TestAgent } from './agent.ts';
import type { World } from './world.ts';

export type Evidence = {
  row: AuditRow;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever is signed.
  payload: any;
  receipt: string;
};

/** Verifies a compact receipt with jose against the published key set. Returns its payload. */
export async function verifyReceipt(world: Pick<World, 'running'>, receipt: string) {
  const keys = await send(`${world.running.baseUrl}/.well-known/svc-receipt-keys.json`, {});
  const { payload, protectedHeader } = await compactVerify(receipt, createLocalJWKSet(keys.body), {
    algorithms: ['ES256'],
  });
  expect(protectedHeader.typ).toBe('svc-receipt+jwt');
  return { payload: JSON.parse(new TextDecoder().decode(payload)), kid: protectedHeader.kid };
}

/** Returns the row and the verified receipt of a call, by the audit id in its answer. The stored row is checked against its hash. */
export async function evidenceOf(world: Pick<World, 'running'>, agent: TestAgent, auditId: string): Promise<Evidence> {
  const fetched = await agent.get(`/v1/audit/${auditId}/receipt`);
  expect(fetched.status, fetched.text).toBe(200);
  const { receipt, kid } = fetched.body;
  const verified = await verifyReceipt(world, receipt);
  expect(verified.kid).toBe(kid);
  const { payload } = verified;
  const row = await findAuditRow(world.running.broker.store.db, payload.organisation, auditId);
  expect(row).toMatchObject({ id: auditId, state: 'final', receipt_kid: kid });
  expect(receiptOf(row!)).toBe(receipt);
  expect(payload).toMatchObject({ jti: auditId, agent: agent.agentId, result: row!.result, reason: row!.reason });
  expect(rowHash(row!)).toBe(row!.row_hash);
  expect(payload.row_hash).toBe(row!.row_hash);
  return { row: row!, payload, receipt };
}

/** Returns the audit id of an answer with any status. */
export const auditIdOf = ({ body }: Answer): string => body._meta?.audit_id ?? body.audit_id;

/** Checks the members of the error envelope (specification, Error shapes). */
export function expectEnvelope(answer: Answer, status: number, error: string): void {
  expect([answer.status, answer.body.error], answer.text).toEqual([status, error]);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body.detail).toMatch(/^\S.{10,}/s);
  expect(answer.body.correlation_id).toBe(answer.headers.get('x-correlation-id'));
}

/** Checks the ready payload for `POST /v1/agents/self/diagnostics`. */
export function expectReportHint(answer: Answer, code: string): void {
  const { report_hint, correlation_id } = answer.body;
  expect(report_hint.url).toMatch(/^http:\/\/localhost:\d+\/v1\/agents\/self\/diagnostics$/);
  expect(report_hint.suggested_payload).toMatchObject({ code, correlation_id });
  expect(report_hint.suggested_payload.message).toBeTypeOf('string');
  expect(['info', 'warning', 'error']).toContain(report_hint.suggested_payload.severity);
}

/** Runs `work`, and checks that the platform gets no request. */
export async function withoutCalls<T>(world: World, work: () => Promise<T>): Promise<T> {
  const before = world.upstream.seen.length;
  const answer = await work();
  expect(world.upstream.seen.length, 'calls that reached the platform').toBe(before);
  return answer;
}

/** Expects ActionDenied (specification): its members, its row and its receipt, and no request to the platform. */
export async function expectDenied(
  world: World,
  agent: TestAgent,
  request: Record<string, unknown>,
  reason: string,
): Promise<Answer> {
  const answer = await withoutCalls(world, () => agent.act(request));
  expect([answer.status, answer.body.reason], answer.text).toEqual([403, reason]);
  const { error, detail, halt, correlation_id } = answer.body;
  expect(error).toBe(halt === undefined ? 'Permission denied' : 'agent_halted');
  expect(detail).toMatch(/\.$/);
  expect(correlation_id).toBe(answer.headers.get('x-correlation-id'));
  expectReportHint(answer, reason);
  const { row, payload } = await evidenceOf(world, agent, auditIdOf(answer));
  expect(row).toMatchObject({ result: 'denied', reason, upstream_status: null, correlation_id });
  expect(payload.decision).not.toBeNull();
  return answer;
}

/** Expects the refusal of a malformed call: a 400 with its text, its row and its receipt, and no request to the platform. */
export async function expectMalformed(
  world: World,
  agent: TestAgent,
  request: Parameters<TestAgent['act']>,
  code: string,
  words: string,
): Promise<Answer> {
  const answer = await withoutCalls(world, () => agent.act(...request));
  expectEnvelope(answer, 400, code);
  expect(answer.body.detail).toContain(words);
  expectReportHint(answer, code);
  const { row } = await evidenceOf(world, agent, auditIdOf(answer));
  expect(row).toMatchObject({ result: 'errored', reason: code, correlation_id: answer.body.correlation_id });
  return answer;
}
