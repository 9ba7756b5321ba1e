/** Bodies and answers of megabytes: whoever else is asking goes on being answered while they are read and written. */
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { longJson } from '../../broker/http/reply.ts';
import type { Answer } from '../world/agent.ts';
import { givenWorld, shared } from '../world/given.ts';
import { longestTurn, machineMs } from '../world/longest-turn.ts';
import { WRITE } from '../world/requests.ts';

const MIB = 1024 * 1024;
const PIECE = 64 * 1024;
/** In units of `machineMs`: 0.3 to 0.5, most of it in `JSON.parse`. In one piece, 1.5 and more. */
const LONGEST_TURN = 1;

describe('long bodies and answers', { timeout: 60_000 }, () => {
  const world = givenWorld('sqlite');
  const organisation = shared(() => world.organisation());
  let unit: number;
  beforeAll(() => {
    unit = machineMs(Array.from({ length: 5_000 }, (_, i) => `${i} ${'a\n'.repeat(225)}`));
  });

  /** Sends a body in small pieces, so that sending it does not count. */
  async function post(path: string, body: Buffer): Promise<{ status: number; text: string }> {
    const { broker } = world.running;
    const token = mintOwnerSession(broker, organisation.owner).token;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const asked = request(world.running.baseUrl + path, { method: 'POST', headers });
    const pieces = Array.from({ length: Math.ceil(body.length / PIECE) }, (_, i) =>
      body.subarray(i * PIECE, (i + 1) * PIECE),
    );
    const [[answer]] = await Promise.all([once(asked, 'response'), pipeline(pieces, asked)]);
    return { status: answer.statusCode, text: await textOf(answer) };
  }

  test('a body of 16 MiB is read in turns that keep nobody waiting', async () => {
    // Not what the route takes, so that reading it is all that is done.
    const body = Buffer.from(JSON.stringify({ text: 1, more: '\n'.repeat(8 * MIB) }));
    let answer = { status: 0, text: '' };
    const longest = await longestTurn(async () => {
      answer = await post('/owner/governance/plan', body);
    });
    expect(answer.text).toContain('invalid_request');
    expect(longest).toBeLessThan(LONGEST_TURN * unit);
  });

  test('a million names in a body of an owner are refused before they are taken in', async () => {
    const names = Array.from({ length: 1_000_000 }, (_, i) => `"env:${i.toString(36)}":""`);
    const body = Buffer.from(`{"text":"","values":{${names.join(',')}}}`);
    let answer = { status: 0, text: '' };
    const longest = await longestTurn(async () => {
      answer = await post('/owner/governance/plan', body);
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('its objects have too many members');
    expect(longest).toBeLessThan(LONGEST_TURN * unit);
  });

  test('20,000 members of a body of an owner are read, and its unknown names are not all explained', async () => {
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, i]));
    // With name and rules.
    const { status, body } = await organisation.ask('POST', '/owner/policies', { name: 'x', rules: [members(19_998)] });
    expect([status, body.error]).toEqual([400, 'invalid_governance']);
    expect(body.detail).not.toContain('n19997');
    const more = await organisation.ask('POST', '/owner/policies', { name: 'x', rules: [members(19_999)] });
    expect(more.body).toMatchObject({ error: 'invalid_request', detail: expect.stringContaining('too many members') });
  });

  test('a call with a hundred thousand names is held in turns of one step each', async () => {
    const names = Array.from({ length: 100_000 }, (_, i) => `"${i.toString(36)}":0`);
    const agent = await (await world.demoOrganisation()).agent();
    const asked = JSON.stringify(WRITE).replace('{"title":"x"}', `{${names.join(',')}}`);
    let answer: Answer | undefined;
    const before = process.threadCpuUsage();
    const longest = await longestTurn(async () => {
      answer = await agent.act(asked);
    });
    const { user, system } = process.threadCpuUsage(before);
    expect(answer?.status).toBe(202);
    // Of all the work the longest, parsing or hashing it, is 0.4; hashed and sealed in one turn it is 0.6 and more.
    expect(longest).toBeLessThan(0.5 * ((user + system) / 1000));
  });

  test('an answer of 16 MB is made in turns that keep nobody waiting', async () => {
    const text = '\n'.repeat(8 * MIB);
    const list = Array.from({ length: 100_000 }, (_, at) => ({
      at,
      details: ['a: 1 → 2', 'b'],
      text: 'a'.repeat(100),
    }));
    const longest = await longestTurn(async () => {
      const { body } = await longJson(200, { text, list });
      expect(Buffer.byteLength(body ?? '')).toBeGreaterThan(20_000_000);
    });
    expect(longest).toBeLessThan(LONGEST_TURN * unit);
  });

  test.each([
    ['nothing', {}],
    ['empty members', { list: [], text: '' }],
    ['a short list and text', { list: [1, 'a', null, { b: [] }], text: 'a"\n😀\ud83d' }],
    ['a list that ends with a part', { list: Array.from({ length: 500 }, (_, i) => i), more: 'a' }],
    ['a longer one', { list: Array.from({ length: 501 }, (_, i) => ({ i })) }],
    ['pairs of surrogates where parts end', { a: '😀'.repeat(200_000), b: `a${'😀'.repeat(200_000)}` }],
  ])('what is made in parts is what would be made in one: %s', async (_name, value) => {
    expect(String((await longJson(200, value)).body)).toBe(JSON.stringify(value));
  });
});
