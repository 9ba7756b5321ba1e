/** Makes one call through either entry point: as JSON through `POST /v1/actions`, or as a client of the platform through `/proxy`. */
import { expect } from 'vitest';
import type { Answer, TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectDenied, withoutCalls } from '../world/evidence.ts';
import type { World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

export const ENTRY_POINTS = ['POST /v1/actions', '/proxy'] as const;
export type EntryPoint = (typeof ENTRY_POINTS)[number];

/** A call as an agent writes it for `POST /v1/actions`. /proxy infers the scope itself. */
export type EntryPointCall = {
  platform: string;
  scope: string;
  method: string | undefined;
  endpoint: string | undefined;
  data?: object;
};

/** The agent's answer, in the form of `POST /v1/actions`: 200 for any answer of the platform, 202 for a held call. */
export async function actThrough(entryPoint: EntryPoint, agent: TestAgent, call: EntryPointCall): Promise<Answer> {
  if (entryPoint === 'POST /v1/actions') return await agent.act(call);
  const { platform, method = 'GET', endpoint = '', data } = call;
  const answer = await rawClient(() => agent)(method, `/proxy/${platform}-main${endpoint}`, {
    headers: { 'x-svc-wait': '0' },
    ...(data && { body: JSON.stringify(data) }),
  });
  const audit_id = answer.headers.get('x-svc-audit-id');
  if (answer.headers.get('content-type') === 'application/problem+json') {
    const isHeld = answer.body.error === 'approval_pending';
    return { ...answer, status: isHeld ? 202 : answer.status, body: { ...answer.body, audit_id } };
  }
  const _meta = { upstream_status: answer.status, audit_id };
  return { ...answer, status: 200, body: { data: answer.body, _meta } };
}

/** Expects a denial for this reason, with nothing sent, and a row with it. */
export async function deniedThrough(
  entryPoint: EntryPoint,
  world: World,
  agent: TestAgent,
  call: EntryPointCall,
  reason: string,
): Promise<Answer> {
  if (entryPoint === 'POST /v1/actions') return await expectDenied(world, agent, call, reason);
  const answer = await withoutCalls(world, () => actThrough(entryPoint, agent, call));
  expect([answer.status, answer.body.error, answer.body.reason], answer.text).toEqual([403, reason, reason]);
  const { row } = await evidenceOf(world, agent, auditIdOf(answer));
  expect(row).toMatchObject({ result: 'denied', reason, upstream_status: null });
  return answer;
}
