/** How long an open request waits for a decision. */
import { expect, test } from 'vitest';
import { waitFor } from '../../mcp/tools/waiting.ts';

test('a wait of some seconds is one long poll of as many seconds, although a part of the first has passed', async () => {
  const request = { progress: async () => {}, signal: new AbortController().signal };
  const asked: [seconds: number, polled: number[]][] = [
    [1, []],
    [20, []],
    [50, []],
  ];
  for (const [seconds, polled] of asked) {
    const poll = async (waitSeconds: number) => {
      polled.push(waitSeconds);
      return { ok: true as const, value: 'made' };
    };
    const endsAt = Date.now() + seconds * 1000 - 100;
    await waitFor(poll, () => true, { request: request as never, endsAt, news: '' });
  }
  expect(asked.map(([, polled]) => polled)).toEqual([[1], [20], [50]]);
});
