import { vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { type Organisation, READ, type World } from '../world/world.ts';

/** Returns the text of a path, read as an owner. */
export async function readAsOwner(world: World, { owner }: Organisation, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${mintOwnerSession(world.running.broker, owner).token}` };
  return await (await fetch(`${world.running.baseUrl}${path}`, { headers })).text();
}

/** Waits until a checkpoint covers all rows, at least so many, and returns their number. A log is signed every 5 s. */
export const settledLog = (organisation: Organisation, atLeast: number): Promise<number> =>
  vi.waitUntil(
    async () => {
      const { size, waiting, checkpoint } = (await organisation.ask('GET', '/owner/log')).body;
      return waiting === 0 && size >= atLeast && checkpoint?.size === size ? (size as number) : undefined;
    },
    { timeout: scaledTimeout(30_000), interval: 500 },
  );

/**
 * Makes one read, `action`, and records more rows like its own: signed, stored and put into the log by the broker's recorder. Each further call would take several
 * times as much. Returns the ids of the rows.
 */
export async function recordReads(
  world: World,
  { id }: Organisation,
  agent: TestAgent,
  count: number,
  action: Record<string, unknown> = READ,
): Promise<string[]> {
  const { broker, recorder } = world.running.services;
  const { body } = await expectStatus(200, agent.act(action));
  const first = (await findAuditRow(broker.store.db, id, body._meta.audit_id))!;
  const own = { row_hash: null, receipt_kid: null, receipt: null, receipt_format: null, receipt_issuer: null };
  const more = Array.from({ length: count - 1 }, () => ({
    ...first,
    ...own,
    id: uuidv7(broker.clock()),
    correlation_id: uuidv4(),
  }));
  await Promise.all(more.map((row) => recorder.record({ row, value: undefined })));
  return [first.id, ...more.map((row) => row.id)];
}
