/** Platform answers by `/mcp` that are larger than the limit of a tool result: truncated, and never parsed as a whole. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { callMcp } from '../world/oauth-client.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { ALLOW_ALL, fresh, givenWorld, READ, shared, WRITE } from '../world/world.ts';

const MIB = 1024 * 1024;
const TOLD = 256 * 1024;
const LONG = '1234567890123456789';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = fresh(() => organisation.agent({ rules: ALLOW_ALL }));

const answers = (answer: string, before: Promise<void> = Promise.resolve()) => {
  world.upstream.answer = async (_, response) => {
    await before;
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  };
};

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
async function call(name: string, { method: _, ...args }: typeof READ): Promise<any> {
  const message = { method: 'tools/call', params: { name, arguments: args } };
  const { text } = await callMcp(world.running.baseUrl, agent.token(), message);
  const line = text.split('\n').find((one) => one.includes('"result"')) ?? text;
  return JSON.parse(line.replace(/^data: /, '')).result;
}

/** Records the longest text that is passed to JSON.parse in the main thread. */
function longestParsed(): () => number {
  const { parse } = JSON;
  let longest = 0;
  const watching = vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
    longest = Math.max(longest, String(text).length);
    return parse(text, reviver);
  });
  onTestFinished(() => watching.mockRestore());
  return () => longest;
}

describe('an answer of 3 MiB by /mcp', () => {
  test.each([
    ['small numbers', `[${'1,'.repeat(1.5 * MIB)}1]`],
    ['small numbers and one that a double does not hold', `[${LONG},${'1,'.repeat(1.5 * MIB)}1]`],
    ['objects', `[${`{"id":${LONG},"a":""},`.repeat(90_000)}{}]`],
  ])('of %s is not parsed, and its beginning is returned', async (_, answer) => {
    const longest = longestParsed();
    answers(answer);
    const { structuredContent, content } = await call('read_platform', READ);
    expect(longest()).toBeLessThan(2 * MIB);
    const { data, truncated, bytes } = structuredContent;
    expect([truncated, bytes]).toEqual([true, answer.length]);
    expect(data === answer.slice(0, TOLD)).toBe(true);
    expect(content[0].text).toMatch(/only the beginning.*Read less at a time.*whole from POST \/v1\/actions/);
    expect(JSON.parse(content.at(-1).text)).toEqual(structuredContent);
  });

  test('that is one string is returned as text', async () => {
    answers(JSON.stringify('a\n'.repeat(MIB)));
    const { data, truncated, bytes } = (await call('read_platform', READ)).structuredContent;
    expect([truncated, bytes]).toEqual([true, 2 * MIB]);
    expect(data === 'a\n'.repeat(TOLD / 2)).toBe(true);
  });
});

test('pictures in the result of a tool of an MCP server are shown up to 1 MiB, and named beyond it', async () => {
  const picture = (bytes: number) => Buffer.alloc(bytes, 'picture').toString('base64');
  const [large, larger] = [picture(700 * 1024), picture(800 * 1024)];
  const image = (data: string) => ({ type: 'image', data, mimeType: 'image/png', annotations: { priority: 1 } });
  answers(JSON.stringify({ content: [{ type: 'text', text: 'Taken.' }, image(large), image(larger)] }));
  const { structuredContent, content } = await call('read_platform', READ);
  expect(structuredContent).toMatchObject({
    status: 'answered',
    detail: expect.stringContaining('1 next to this text, 1 not shown'),
  });
  expect(structuredContent.data).toEqual({
    content: [
      { type: 'text', text: 'Taken.' },
      { type: 'image', mimeType: 'image/png', annotations: { priority: 1 }, bytes: 700 * 1024 },
      { type: 'image', mimeType: 'image/png', annotations: { priority: 1 }, bytes: 800 * 1024 },
    ],
  });
  expect(structuredContent.truncated).toBeUndefined();
  expect(content.slice(2)).toEqual([{ type: 'image', data: large, mimeType: 'image/png' }]);
  expect(JSON.stringify(content.slice(0, 2)).length).toBeLessThan(4_096);
});

test('an answer that is small enough without its whitespace is returned whole, with all digits', async () => {
  const value = [LONG, ...Array(30_000).fill(12)];
  const answer = JSON.stringify(value, undefined, 8).replace(`"${LONG}"`, LONG);
  expect(answer.length).toBeGreaterThan(TOLD);
  answers(answer);
  expect((await call('read_platform', READ)).structuredContent).toMatchObject({ data: value });
});

test('a concurrent identical write gets the same answer as the one in progress', async () => {
  const made = Promise.withResolvers<void>();
  answers(`{"id":${LONG},"list":[1.0,"\\u00e9"]}`, made.promise);
  const first = call('write_platform', WRITE);
  await expect.poll(() => world.upstream.seen.length, { timeout: scaledTimeout(10_000) }).toBe(1);
  const begunAt = async () => (await world.db.selectFrom('mcp_repeats').selectAll().executeTakeFirst())?.expires_at;
  const before = await begunAt();
  const second = call('write_platform', WRITE);
  await expect.poll(begunAt, { timeout: scaledTimeout(10_000) }).not.toBe(before);
  made.resolve();
  const [one, other] = [(await first).structuredContent, (await second).structuredContent];
  expect(one.data).toEqual({ id: LONG, list: [1, 'é'] });
  expect(other).toEqual({ ...one, detail: expect.stringContaining('Nothing was sent again') });
  expect(world.upstream.seen).toHaveLength(1);
});
