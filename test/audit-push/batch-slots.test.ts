/** Receivers that answer slowly do not delay those of other organisations. */
import { beforeAll, describe, expect, test } from 'vitest';
import { makeBatchSlots } from '../../broker/audit-push/batch-slots.ts';
import { makeSharedSemaphore } from '../../broker/runtime/semaphore.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { type AuditReceiver, startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Work that continues until the test ends it by name; lists the names in progress. */
function makeWork() {
  const under = new Map<string, () => void>();
  return {
    names: () => [...under.keys()],
    work: (name: string) => () => new Promise<void>((resolve) => under.set(name, resolve)),
    end: async (name: string) => {
      under.get(name)?.();
      under.delete(name);
      await turn();
    },
  };
}

describe('shared slots', () => {
  test('each owner has a limit of slots, and a free slot goes to the first in the queue whose owner is below its limit', async () => {
    const take = makeSharedSemaphore(3, 2);
    const { names, work, end } = makeWork();
    const done = ['a1', 'a2', 'a3', 'b1', 'c1', 'a4'].map((name) => take(name[0]!, work(name)));
    await turn();
    expect(names()).toEqual(['a1', 'a2', 'b1']);
    await end('b1');
    expect(names()).toEqual(['a1', 'a2', 'c1']);
    await end('a1');
    expect(names()).toEqual(['a2', 'c1', 'a3']);
    for (const name of ['a2', 'a3', 'a4', 'c1']) await end(name);
    await Promise.all(done);
    const failing = take('a', () => Promise.reject(new Error('broken')));
    await expect(failing).rejects.toThrow('broken');
    expect(await take('a', async () => 1)).toBe(1);
  });
});

describe('slots for batches', () => {
  const sink = (id: string, more: object = {}) => ({
    id,
    organisation_id: id[0]!,
    kind: 'webhook',
    failures: 0,
    ...more,
  });

  test('slow receivers get one batch at a time per organisation, and use no slots of the others', async () => {
    const places = makeBatchSlots();
    const { names, work, end } = makeWork();
    const slow = ['a1', 'a2', 'b1', 'c1', 'd1', 'e1', 'f1'];
    for (const id of slow) places.taken(id, 2_001);
    const done = slow.map((id) => places.send(sink(id), work(id)));
    await turn();
    expect(names()).toEqual(['a1', 'b1', 'c1', 'd1']);
    done.push(places.send(sink('g1'), work('g1')));
    await turn();
    expect(names()).toContain('g1');
    // A receiver that is fast again uses the slots of the others.
    await end('a1');
    places.taken('a1', 1);
    done.push(places.send(sink('a1'), work('a1 again')));
    await turn();
    expect(names()).toEqual(['b1', 'c1', 'd1', 'g1', 'a2', 'a1 again']);
    for (let left = names(); left.length > 0; left = names()) for (const name of left) await end(name);
    await Promise.all(done);
  });

  test('failed receivers are retried one at a time per organisation; files have a slot of their own', async () => {
    const places = makeBatchSlots();
    const { names, work, end } = makeWork();
    const done = ['a1', 'a2', 'b1'].map((id) => places.send(sink(id, { failures: 1 }), work(id)));
    done.push(...['a3', 'b3'].map((id) => places.send(sink(id, { kind: 'file' }), work(id))));
    await turn();
    expect(names()).toEqual(['a1', 'b1', 'a3']);
    for (let left = names(); left.length > 0; left = names()) for (const name of left) await end(name);
    await Promise.all(done);
  });
});

let slow: AuditReceiver;
const receiver = shared(() => startAuditReceiver());
beforeAll(async () => {
  slow = await startAuditReceiver();
  afterFile(async () => {
    await receiver.close();
    await slow.close();
  });
});

describe.each(ONE_STORE)(`pushing on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: `${receiver.address},${slow.address}` }));

  test('an organisation whose receivers are all slow does not delay others', async () => {
    let waiting = 0;
    slow.answer = () => {
      waiting++;
    };
    const many = await world.demoOrganisation(receiver.platform);
    for (let at = 0; at < 8; at++) {
      const sink = { name: `slow-${at}`, kind: 'webhook', url: `${slow.url}/in`, from: 'beginning' };
      expect((await many.ask('POST', '/owner/audit-sinks', sink)).status).toBe(201);
    }
    await expect.poll(() => waiting, { timeout: 10_000 }).toBeGreaterThan(1);
    const other = await world.demoOrganisation(receiver.platform);
    const sink = { name: 'siem', kind: 'webhook', url: `${receiver.url}/in`, from: 'beginning' };
    expect((await other.ask('POST', '/owner/audit-sinks', sink)).status).toBe(201);
    const began = performance.now();
    await receiver.waitFor(1, 60_000);
    // A receiver has 30 s to answer.
    expect(performance.now() - began).toBeLessThan(15_000);
  }, 180_000);
});
