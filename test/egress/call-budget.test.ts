import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { BudgetLimits } from '../../broker/egress/budget-limits.ts';
import { CallBudget } from '../../broker/egress/call-budget.ts';
import type { CallLease } from '../../broker/egress/call-lease.ts';
import { fixedUpstream, get, httpUpstream, outboundTo } from './upstream.ts';

const LIMITS: BudgetLimits = {
  family: { calls: 2, bytes: 100 },
  all: { calls: 3, bytes: 250 },
  reserve: { calls: 2, bytes: 60 },
};

describe('concurrent calls', () => {
  test('are limited per family and in total', () => {
    const budget = new CallBudget(LIMITS);
    const [a1, a2, a3, b1, c1] = ['a', 'a', 'a', 'b', 'c'].map((family) =>
      budget.lease({ family: family, organisation: 'acme' }),
    ) as CallLease[];
    expect([a1!.begin(), a2!.begin(), a3!.begin()]).toEqual([true, true, false]);
    expect([b1!.begin(), c1!.begin()]).toEqual([true, false]);
    a1!.endCall();
    expect([a3!.begin(), c1!.begin()]).toEqual([true, false]);
    expect(budget.held.calls).toBe(3);
  });

  test('have the documented limits', () => {
    const budget = new CallBudget();
    const begun = Array.from({ length: 300 }, (_, i) =>
      budget.lease({ family: `${Math.floor(i / 20)}`, organisation: 'acme' }).begin(),
    );
    expect(begun.slice(0, 20).filter(Boolean).length).toBe(16);
    expect(begun.filter(Boolean).length).toBe(240);
    const more = Array.from({ length: 20 }, (_, i) =>
      budget.lease({ family: `more ${i}`, organisation: 'acme' }).begin(),
    );
    expect(more.filter(Boolean).length).toBe(16);
  });

  test('of one organisation leave a reserve to the others', () => {
    const budget = new CallBudget(LIMITS);
    const begin = (family: string, organisation: string) =>
      budget.lease({ family: family, organisation: organisation }).begin();
    expect(['a', 'b', 'c', 'd'].map((family) => begin(family, 'large'))).toEqual([true, true, true, false]);
    // Each of the others has what a family may have, as long as the reserve is sufficient.
    expect([begin('e', 'small'), begin('x', 'large'), begin('f', 'small'), begin('g', 'small')]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect([begin('h', 'third'), budget.held.calls]).toEqual([false, 5]);
  });

  test('of one organisation may use everything, when no other calls', () => {
    const budget = new CallBudget();
    const begun = Array.from({ length: 400 }, (_, i) =>
      budget.lease({ family: `${i % 40}`, organisation: 'acme' }).begin(),
    );
    expect(begun.filter(Boolean).length).toBe(256);
    const others = Array.from({ length: 100 }, (_, i) =>
      budget.lease({ family: `other ${i}`, organisation: `other ${i % 10}` }).begin(),
    );
    expect(others.filter(Boolean).length).toBe(64);
  });

  test('a lease begins once, and releases once', () => {
    const budget = new CallBudget(LIMITS);
    const lease = budget.lease({ family: 'a', organisation: 'acme' });
    expect([lease.begin(), lease.begin(), budget.held.calls]).toEqual([true, true, 1]);
    lease.count(7);
    for (let i = 0; i < 3; i++) lease.endCall();
    expect(budget.held).toEqual({ calls: 0, bytes: 7 });
    for (let i = 0; i < 3; i++) lease.release();
    lease.count(5);
    expect([lease.begin(), budget.held]).toEqual([false, { calls: 0, bytes: 0 }]);
  });
});

describe('memory for a parsed body', () => {
  const leaseOf = (budget: CallBudget) => budget.lease({ family: 'a', organisation: 'acme' });

  test('is taken when there is room, before the call has a slot, and does not stop its own call', () => {
    const budget = new CallBudget(LIMITS);
    const lease = leaseOf(budget);
    expect([lease.takeRoom(240), budget.held]).toEqual([true, { calls: 0, bytes: 240 }]);
    expect([leaseOf(budget).begin(), lease.begin(), lease.begin()]).toEqual([false, true, true]);
    // Refused immediately, and then not the one for which others wait.
    const refused = leaseOf(budget);
    expect([refused.takeRoom(1), refused.hasRoom]).toEqual([false, true]);
    lease.endCall();
    expect([lease.begin(), budget.held]).toEqual([false, { calls: 0, bytes: 240 }]);
    lease.release();
    expect([lease.takeRoom(1), budget.held]).toEqual([false, { calls: 0, bytes: 0 }]);
  });

  test('is waited for, and then taken by one body after another', async () => {
    const budget = new CallBudget(LIMITS);
    const [first, second, third] = [leaseOf(budget), leaseOf(budget), leaseOf(budget)];
    first.count(100);
    const taken: string[] = [];
    const waiting = [second.waitForRoom(100).then(() => taken.push('second')), third.waitForRoom(100)];
    await new Promise(setImmediate);
    expect([taken, budget.held.bytes]).toEqual([[], 100]);
    first.release();
    await waiting[0];
    expect([taken, budget.held.bytes]).toEqual([['second'], 100]);
    second.release();
    expect([await waiting[1], budget.held.bytes]).toEqual([true, 100]);
  });

  test('is not taken after ten seconds, and the lease is then none that others wait for', async () => {
    vi.useFakeTimers();
    try {
      const budget = new CallBudget(LIMITS);
      const [first, second, third] = [leaseOf(budget), leaseOf(budget), leaseOf(budget)];
      third.count(100);
      first.count(1);
      first.release();
      const waiting = [second.waitForRoom(1)];
      // The oldest lease always continues.
      expect(await waiting[0]).toBe(true);
      const late = leaseOf(budget).waitForRoom(1);
      await vi.advanceTimersByTimeAsync(10_000);
      expect([await late, budget.held.bytes]).toEqual([false, 101]);
      second.release();
      expect([third.hasRoom, leaseOf(budget).hasRoom]).toEqual([true, true]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('bytes of answers', () => {
  test('over the limit no call begins until bytes are released', () => {
    const budget = new CallBudget(LIMITS);
    const first = budget.lease({ family: 'a', organisation: 'acme' });
    first.begin();
    first.count(100);
    first.endCall();
    expect([
      budget.lease({ family: 'a', organisation: 'acme' }).begin(),
      budget.lease({ family: 'b', organisation: 'acme' }).begin(),
    ]).toEqual([false, true]);
    first.release();
    expect(budget.lease({ family: 'a', organisation: 'acme' }).begin()).toBe(true);
  });

  test('of one organisation leave room for the answers of the others', () => {
    const budget = new CallBudget(LIMITS);
    const [first, second, small] = [
      budget.lease({ family: 'a', organisation: 'large' }),
      budget.lease({ family: 'b', organisation: 'large' }),
      budget.lease({ family: 'c', organisation: 'small' }),
    ];
    for (const lease of [first, second]) lease.begin();
    first.count(90);
    second.count(90);
    expect(small.begin()).toBe(true);
    second.count(90);
    expect([second.hasRoom, budget.lease({ family: 'd', organisation: 'large' }).begin()]).toEqual([false, false]);
    expect(small.hasRoom).toBe(true);
    small.count(60);
    expect(small.hasRoom).toBe(false);
    for (const lease of [first, second, small]) lease.release();
    expect(budget.held).toEqual({ calls: 0, bytes: 0 });
  });

  test('over the limit the oldest call continues, and the others wait', () => {
    const budget = new CallBudget(LIMITS);
    const [one, two] = [
      budget.lease({ family: 'a', organisation: 'acme' }),
      budget.lease({ family: 'a', organisation: 'acme' }),
    ];
    for (const lease of [one, two]) lease.begin();
    two.count(60);
    one.count(60);
    expect([one.hasRoom, two.hasRoom]).toEqual([true, false]);
    let resumed = 0;
    two.whenRoom(() => resumed++);
    one.count(20);
    one.endCall();
    expect(resumed).toBe(0);
    one.release();
    expect([resumed, two.hasRoom]).toEqual([1, true]);
    two.release();
    expect(resumed).toBe(1);
  });

  test('a released lease no longer waits', () => {
    const budget = new CallBudget(LIMITS);
    const [one, two] = [
      budget.lease({ family: 'a', organisation: 'acme' }),
      budget.lease({ family: 'a', organisation: 'acme' }),
    ];
    for (const lease of [one, two]) lease.begin();
    one.count(100);
    let resumed = 0;
    two.whenRoom(() => resumed++);
    two.release();
    one.release();
    expect(resumed).toBe(0);
  });

  test('one lease can always continue, and in the end everything is released', () => {
    const step = fc.tuple(fc.nat(9), fc.constantFrom('read', 'end', 'release'));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const budget = new CallBudget(LIMITS);
        const leases = Array.from({ length: 10 }, (_, i) =>
          budget.lease({ family: `${i % 3}`, organisation: `${i % 2}` }),
        );
        const open = new Set<CallLease>();
        for (const [i, what] of steps) {
          const lease = leases[i]!;
          if (lease.begin()) open.add(lease);
          if (what === 'read' && open.has(lease) && lease.hasRoom) lease.count(40);
          else if (what === 'end') lease.endCall();
          else if (what === 'release') {
            lease.release();
            open.delete(lease);
          }
          expect(open.size === 0 || [...open].some((one) => one.hasRoom)).toBe(true);
          expect(budget.held.calls).toBeLessThanOrEqual(5);
        }
        for (const lease of leases) lease.release();
        expect(budget.held).toEqual({ calls: 0, bytes: 0 });
      }),
    );
  });
});

describe('answers in flight', () => {
  const MIB = 1024 * 1024;

  test('wait when the budget is used up, with back-pressure on the platform', async () => {
    await using upstream = await httpUpstream((_, response) => response.end(Buffer.alloc(2 * MIB, 'x')));
    await using outbound = outboundTo(upstream, { idleTimeoutMs: 1_000, totalTimeoutMs: 60_000 });
    const share = { calls: 16, bytes: 3 * MIB };
    const budget = new CallBudget({
      family: share,
      all: { calls: 16, bytes: 100 * MIB },
      reserve: { calls: 0, bytes: 0 },
    });
    const leases = Array.from({ length: 6 }, () => budget.lease({ family: 'a', organisation: 'acme' }));
    const answers = leases.map(async (lease) => {
      expect(lease.begin()).toBe(true);
      const answer = await outbound.send(get(upstream.url(), { lease }));
      lease.endCall();
      return answer.kind === 'answer' && answer.body.length;
    });
    expect(await answers[0]).toBe(2 * MIB);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    // An answer that the budget pauses must not count as idle.
    expect(budget.held.bytes).toBeLessThan(5 * MIB + 6 * 64 * 1024);
    expect(budget.lease({ family: 'a', organisation: 'acme' }).begin()).toBe(false);
    for (const [i, lease] of leases.entries()) {
      expect(await answers[i]).toBe(2 * MIB);
      lease.release();
    }
    expect(budget.held).toEqual({ calls: 0, bytes: 0 });
  });

  test('that decompress to much more than usual do so one after another', async () => {
    const body = gzipSync(Buffer.alloc(8 * MIB));
    const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`;
    await using upstream = await fixedUpstream(Buffer.concat([Buffer.from(head), body]));
    await using outbound = outboundTo(upstream);
    const budget = new CallBudget({
      family: { calls: 16, bytes: MIB },
      all: { calls: 16, bytes: 100 * MIB },
      reserve: { calls: 0, bytes: 0 },
    });
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, budget.held.bytes);
    }, 1);
    const answers = Array.from({ length: 4 }, async () => {
      const lease = budget.lease({ family: 'a', organisation: 'acme' });
      expect(lease.begin()).toBe(true);
      const answer = await outbound.send(get(upstream.url(), { lease }));
      lease.release();
      return answer.kind === 'answer' && answer.body.length;
    });
    expect(await Promise.all(answers)).toEqual([8 * MIB, 8 * MIB, 8 * MIB, 8 * MIB]);
    clearInterval(watch);
    // Each takes 10 MiB; the oldest continues even when another answer took the last room.
    expect(most).toBeLessThan(21 * MIB);
    expect(budget.held).toEqual({ calls: 0, bytes: 0 });
  });

  test('that are streamed count only the bytes waiting for the reader', async () => {
    await using upstream = await fixedUpstream('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    await using outbound = outboundTo(upstream);
    const budget = new CallBudget(LIMITS);
    const lease = budget.lease({ family: 'a', organisation: 'acme' });
    lease.begin();
    const answer = await outbound.stream(get(upstream.url(), { lease }));
    if (answer.kind !== 'stream') throw new Error(answer.detail);
    await expect.poll(() => budget.held.bytes).toBe(2);
    await answer.body.next();
    expect(budget.held.bytes).toBe(0);
    expect((await answer.body.next()).done).toBe(true);
  });
});
