/** Answers that are streamed although the platform declared their length: with the last byte a client has the complete answer. */
import { request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, startWorld } from '../world/world.ts';

/** What a client gets: the declared length, the bytes, and whether they are the complete answer to it. */
function get(agent: TestAgent): Promise<{ declared: number; bytes: number; isComplete: boolean }> {
  const { hostname: host, port } = new URL(agent.baseUrl);
  const headers = { authorization: `Bearer ${agent.token()}` };
  return new Promise((resolve, reject) => {
    const asking = request({ host, port, path: '/proxy/demo-main/items', headers }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('error', () => {});
      response.on('close', () =>
        resolve({ declared: Number(response.headers['content-length']), bytes, isComplete: response.complete }),
      );
    });
    asking.on('error', reject).end();
  });
}

const EVENT = Buffer.from('data: one\n\n');
const FILE = Buffer.alloc(3 * 1024 * 1024, 'x');

describe.each(ONE_STORE)(`a streamed answer of declared length on %s${postgresNote}`, (store) => {
  test.each([
    ['a long file', 'application/octet-stream', FILE],
    ['a short list of events', 'text/event-stream', EVENT],
  ])('%s is complete only once it is recorded', async (_, type, body) => {
    const world = await startWorld(store);
    onTestFinished(() => world.running.stop());
    const agent = await (await world.demoOrganisation()).agent({ rules: ALLOW_ALL });
    let end = async () => {};
    let mayRecord = true;
    world.upstream.answer = async (_asked, response) => {
      if (!mayRecord) end = await refuseAuditRows(world, 'final');
      response.writeHead(200, { 'content-type': type, 'content-length': body.length });
      response.end(body);
    };
    expect(await get(agent)).toEqual({ declared: body.length, bytes: body.length, isComplete: true });
    mayRecord = false;
    const cut = await get(agent);
    await end();
    expect(cut.isComplete).toBe(false);
    expect(cut.bytes).toBeLessThan(body.length);
  });
});
