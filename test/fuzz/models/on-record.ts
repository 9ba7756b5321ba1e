/** Checks the audit rows, and their public verification. */
import { compactVerify, createLocalJWKSet } from 'jose';
import { expect } from 'vitest';
import { expectStatus, send } from '../../world/agent.ts';
import type { Holder } from './rights.ts';

type Exported = { id: string; kind: string; result: string; receipt: string | null };

/** Expects one row per call with this result, each with a receipt that verifies and has the same content. */
export async function expectOnRecord({ world, organisation }: Holder, results: readonly string[]): Promise<void> {
  const exported = await expectStatus(200, organisation.ask('GET', '/owner/audit/export'));
  const lines = exported.text.split('\n').filter((line) => line !== '');
  const calls = lines.map((line): Exported => JSON.parse(line)).filter(({ kind }) => kind === 'action');
  expect(calls.map(({ result }) => result).toSorted()).toEqual(results.toSorted());
  const keys = createLocalJWKSet((await send(`${world.running.baseUrl}/.well-known/svc-receipt-keys.json`, {})).body);
  for (const { id, result, receipt } of calls) {
    const { payload } = await compactVerify(receipt ?? '', keys, { algorithms: ['ES256'] });
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({ jti: id, result });
  }
}
