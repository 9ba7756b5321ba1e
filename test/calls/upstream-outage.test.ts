/** What the log says about a platform outage: once when it begins, and once when it ends. */
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { givenWorld, READ } from '../world/world.ts';

describe('an outage of a platform', () => {
  let agent: TestAgent;
  const world = givenWorld();
  beforeAll(async () => {
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
  });

  test('is logged when it begins and when it ends, with the number of failed calls', async () => {
    const lines: unknown[][] = [];
    const { log } = world.running.broker;
    for (const level of ['warn', 'info'] as const) {
      const spy = vi.spyOn(log, level).mockImplementation((...words: unknown[]) => void lines.push([level, ...words]));
      onTestFinished(() => spy.mockRestore());
    }
    const about = () => lines.filter(([, words]) => Object.hasOwn(words as object, 'origin'));
    expect((await agent.act(READ)).status).toBe(200);
    expect(about()).toEqual([]);
    world.upstream.answer = (request) => request.socket.destroy();
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(502);
    world.upstream.answer = undefined;
    for (let i = 0; i < 2; i++) expect((await agent.act(READ)).status).toBe(200);
    const origin = `http://${world.upstream.address}`;
    expect(about()).toEqual([
      ['warn', { origin, err: expect.stringMatching(/^connection_lost/) }, 'a platform does not answer'],
      ['info', { origin, failures: 3, seconds: expect.any(Number) }, 'a platform answers again'],
    ]);
  });
});
