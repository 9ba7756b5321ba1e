import { expect, test } from 'vitest';
import { FairQueue } from '../../broker/egress/fair-queue.ts';
import { fixedUpstream, get, httpUpstream, outboundTo } from './upstream.ts';

test('families take turns, each in FIFO order', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.push(item[0]!, item);
  expect(queue.size).toBe(6);
  expect([queue.next(), queue.next()]).toEqual(['a1', 'b1']);
  queue.push('b', 'b2');
  expect([1, 2, 3, 4, 5].map(() => queue.next())).toEqual(['c1', 'a2', 'b2', 'c2', 'a3']);
  expect([queue.next(), queue.size]).toEqual([undefined, 0]);
});

test('a family that is skipped keeps its turn', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'b1', 'b2']) queue.push(item[0]!, item);
  expect(queue.next((family) => family === 'a')).toBe('b1');
  expect([1, 2, 3].map(() => queue.next())).toEqual(['a1', 'b2', 'a2']);
  queue.push('a', 'a3');
  expect([queue.next(() => true), queue.size, queue.next()]).toEqual([undefined, 1, 'a3']);
});

test('dropped items take no turn', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'b1', 'b2']) queue.push(item[0]!, item);
  queue.drop((item) => item === 'a2' || item.startsWith('b'));
  expect([queue.size, queue.next(), queue.next()]).toEqual([1, 'a1', undefined]);
});

test('a family with many waiting calls delays another family by one call only', async () => {
  const order: string[] = [];
  await using upstream = await httpUpstream((request, response) => {
    order.push(request.url ?? '');
    setTimeout(() => response.end('{}'), 5);
  });
  await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1 });
  const many = Array.from({ length: 20 }, () => outbound.send(get(upstream.url('/many'), { family: 'many' })));
  const one = outbound.send(get(upstream.url('/one'), { family: 'one' }));
  await Promise.all([...many, one]);
  expect(order.indexOf('/one')).toBeLessThanOrEqual(2);
  expect(order.length).toBe(21);
});

test('a call that timed out while waiting takes no turn and no connection', async () => {
  await using upstream = await fixedUpstream('');
  await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1, idleTimeoutMs: 100 });
  const answers = await Promise.all(
    Array.from({ length: 5 }, (_, i) => outbound.send(get(upstream.url(), { family: `${i}` }))),
  );
  expect(answers.map((answer) => answer.kind === 'unreachable' && answer.sent)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
