/** One body, three entry points: a body that POST /v1/actions refuses is refused over stdio and remote /mcp, too. */
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { send, type TestAgent } from '../world/agent.ts';
import { type McpProcess, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { browserOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { ALLOW_ALL, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
/** Levels of nesting that POST /v1/actions accepts, and how many of them are used before `data` begins. */
const MAX_LEVELS = 64;
const BEFORE_DATA = 1;

type Taken = {
  /** Whether the call was made. */
  made: boolean;
  /** The answer's text. */
  text: string;
};
type Entry = (body: Buffer) => Promise<Taken>;

/** Returns the text of an action with this literal `data`. */
const action = (data: string, more = ''): Buffer =>
  Buffer.from(
    `{"platform":"demo","scope":"demo:write","endpoint":"/items/1","method":"PATCH"${more}${data === '' ? '' : `,"data":${data}`}}`,
  );
const withBytes = (data: string, bytes: readonly number[]): Buffer => {
  const [before = '', after = ''] = action(data).toString().split('BYTES');
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
};
const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

const REFUSED: [what: string, body: Buffer, says: RegExp][] = [
  ['an integer of 19 digits', action('{"charge":1234567890123456789}'), /charge.*1234567890123456789/],
  ['a number beyond all doubles', action('{"amount":1e999}'), /amount.*1e999/],
  ['a number below all doubles', action('{"amount":1e-999}'), /amount.*1e-999/],
  ['a fraction of more digits than a double has', action('{"a":[0,0.1000000000000000055]}'), /a\/1/],
  ['a member twice', action('{"to":"a","to":"b"}'), /to.*twice/],
  ['a member twice, one of them escaped', action('{"to":"a","t\\u006f":"b"}'), /to.*twice/],
  ['a member twice beside `data`', action('{}', ',"method":"PUT"'), /method.*twice/],
  ['one level too many', action(nested(MAX_LEVELS - BEFORE_DATA + 1)), /level/],
  ['thousands of levels', action(nested(50_000)), /level/],
  ['half of a surrogate pair', action('{"a":"\\ud800"}'), /surrogate/],
  ['the other half', action('{"a":["\\udc00x"]}'), /surrogate/],
  ['a byte that is no UTF-8', withBytes('{"a":"BYTES"}', [0xff]), /UTF-8/],
  ['a character cut off', withBytes('{"a":"BYTES"}', [0xe2, 0x82]), /UTF-8/],
  ['a surrogate written in bytes', withBytes('{"a":"BYTES"}', [0xed, 0xa0, 0x80]), /UTF-8/],
  ['an overlong character', withBytes('{"a":"BYTES"}', [0xc0, 0xaf]), /UTF-8/],
  ['U+0000 beside `data`', action('{}', ',"reason":"\\u0000"'), /reason|U?\+?0000/],
  ['a member that there is not', action('{}', ',"more":1'), /more/],
  ['a member __proto__ beside `data`', action('{}', ',"__proto__":{"a":1}'), /__proto__/],
  ['headers with a member __proto__', action('{}', ',"headers":{"__proto__":"a"}'), /__proto__|header/],
  ['more than 1 MiB', action(`{"a":"${'x'.repeat(1024 * 1024)}"}`), /large|1 MiB/],
  ['data that is a list', action('[1]'), /data/],
];

const EXACT: [what: string, data: string, arrives: string][] = [
  [
    'numbers that stay what they are',
    '{"a":[1.0,1e2,0.1,-5,9007199254740991]}',
    '{"a":[1,100,0.1,-5,9007199254740991]}',
  ],
  ['members in their order', '{"b":1,"a":{"d":null,"c":[]}}', '{"b":1,"a":{"d":null,"c":[]}}'],
  ['a member __proto__', '{"__proto__":{"a":1},"b":{"__proto__":2}}', '{"__proto__":{"a":1},"b":{"__proto__":2}}'],
  ['text in any script, and U+0000', '{"a":"\\u00e4 日本 \\ud83d\\ude00 \\u0000"}', '{"a":"ä 日本 😀 \\u0000"}'],
  ['as many levels as may be', nested(MAX_LEVELS - BEFORE_DATA), nested(MAX_LEVELS - BEFORE_DATA)],
];

let agent: TestAgent;
let stdio: McpProcess;
let token: string;
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeAll(async () => {
  const policy = await organisation.policy(ALLOW_ALL, 'default');
  agent = await organisation.agent({ policy });
});

let calls = 0;
const toolCall = (args: Buffer, id: number) =>
  Buffer.concat([
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"write_platform","arguments":`),
    args,
    Buffer.from('}}'),
  ]);

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Message = any;
const taken = (message: Message): Taken => ({
  made: message.error === undefined && message.result.isError !== true,
  text: JSON.stringify(message),
});

/** Posts a literal message to /mcp. Returns the status and the JSON-RPC answer. */
async function postMcp(body: Buffer, headers: Record<string, string> = {}) {
  const answer = await send(`${world.running.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      ...headers,
    },
    body: body as never,
  });
  const data = /^data: (\{.*)$/m.exec(answer.text)?.[1];
  return { status: answer.status, message: (data === undefined ? answer.body : JSON.parse(data)) as Message };
}

const ENTRIES: [name: string, entry: Entry][] = [
  [
    'POST /v1/actions',
    async (body) => {
      const { status, text } = await agent.act(body);
      await world.forgive();
      return { made: status === 200, text };
    },
  ],
  [
    'stdio',
    async (body) => {
      const id = ++calls;
      const answer = stdio.next((message) => message.id === id);
      stdio.write(Buffer.concat([toolCall(body, id), Buffer.from('\n')]));
      return taken(await answer);
    },
  ],
  ['remote /mcp', async (body) => taken((await postMcp(toolCall(body, ++calls))).message)],
];

describe.each(ENTRIES)('over %s', (name, entry) => {
  beforeAll(async () => {
    const { access_token } = await new OAuthClient(world).tokens(
      browserOf(world, organisation.owner),
      {},
      { name: `bodies ${name}`, grants: EVERYTHING },
    );
    token = access_token;
    if (name !== 'stdio') return;
    stdio = startMcp(writeProfile(agent), [], {}, afterFile);
    await shakeHands(stdio);
  });

  test.each(REFUSED)('%s is refused, with the path of the problem, and nothing is sent', async (_what, body, says) => {
    const before = world.upstream.seen.length;
    const { made, text } = await entry(body);
    expect([made, text.slice(0, 2000)]).toEqual([false, expect.stringMatching(says)]);
    expect(world.upstream.seen.slice(before)).toEqual([]);
  });

  test.each(EXACT)('%s: the platform receives exactly this body', async (_what, data, arrives) => {
    const { made, text } = await entry(action(data));
    expect([made, text]).toEqual([true, text]);
    expect(world.upstream.seen.at(-1)!.body).toBe(arrives);
  });
});

describe('a message to /mcp', () => {
  test('with JSON in the arguments that parsing would change gets a tool error, in both eras; elsewhere in the message a 400', async () => {
    const bad = action('{"to":"a","to":"b"}');
    const shakenHands = await postMcp(toolCall(bad, 5));
    expect(shakenHands).toMatchObject({
      status: 200,
      message: { id: 5, result: { isError: true, structuredContent: { code: 'invalid_arguments' } } },
    });
    expect(shakenHands.message.result.resultType).toBeUndefined();
    const meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},';
    const stateless = Buffer.from(toolCall(bad, 6).toString().replace('"params":{', `"params":{${meta}`));
    expect((await postMcp(stateless)).message).toMatchObject({ id: 6, result: { resultType: 'complete' } });
    const twice = '{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}';
    expect(await postMcp(Buffer.from(twice))).toMatchObject({
      status: 400,
      message: { jsonrpc: '2.0', id: 7, error: { code: -32600, message: expect.stringContaining('/method') } },
    });
    // A rounded id would be the id of another request.
    const rounded = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}';
    expect(await postMcp(Buffer.from(rounded))).toMatchObject({
      status: 400,
      message: { id: null, error: { code: -32600, message: expect.stringContaining('/id') } },
    });
    const list = Buffer.concat([Buffer.from('['), toolCall(bad, 8), Buffer.from(']')]);
    expect(await postMcp(list)).toMatchObject({ status: 400, message: { id: null, error: { code: -32600 } } });
    for (const none of ['', '{', 'null x', '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}'])
      expect([none, (await postMcp(Buffer.from(none))).message.error.code]).toEqual([none, -32700]);
  });

  test('in a batch is accepted up to revision 2025-03-26, and refused by later ones, which have no batches', async () => {
    const batch = Buffer.from('[{"jsonrpc":"2.0","id":1,"method":"ping"}]');
    for (const revision of [undefined, '2024-11-05', '2025-03-26'])
      expect([revision, await postMcp(batch, { ...(revision && { 'mcp-protocol-version': revision }) })]).toMatchObject(
        [revision, { status: 200, message: { id: 1, result: {} } }],
      );
    for (const revision of ['2025-06-18', '2025-11-25', '2026-07-28'])
      expect([revision, await postMcp(batch, { 'mcp-protocol-version': revision })]).toMatchObject([
        revision,
        { status: 400, message: { id: null, error: { code: -32600, message: expect.stringContaining('no batches') } } },
      ]);
  });

  test('with invalid parameters of initialize or a list gets error -32602', async () => {
    for (const message of ['"method":"initialize"', '"method":"tools/list","params":{"cursor":"x"}'])
      expect(await postMcp(Buffer.from(`{"jsonrpc":"2.0","id":7,${message}}`))).toMatchObject({
        status: 200,
        message: { jsonrpc: '2.0', id: 7, error: { code: -32602, message: expect.stringMatching(/^Invalid/) } },
      });
  });

  test('is accepted if Accept covers both types or is missing (RFC 9110), and refused otherwise', async () => {
    const ping = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    for (const [accept, status] of [
      ['*/*', 200],
      ['text/html, */*;q=0.8', 200],
      ['Application/JSON, Text/Event-Stream;Q=0.5', 200],
      ['application/*, text/*', 200],
      ['application/json', 406],
      ['text/event-stream', 406],
      ['application/json;q=0, text/event-stream', 406],
      ['*/*, text/event-stream;q=0.0', 406],
      ['*/*;q=0', 406],
      ['application/jsonp, text/event-streams', 406],
      ['', 200],
    ] as const)
      expect([accept, (await postMcp(ping, { accept })).status]).toEqual([accept, status]);
    // Unlike fetch, this request has no Accept header.
    const asked = request(`${world.running.baseUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    }).end(ping);
    const [answer] = await once(asked, 'response');
    expect([answer.statusCode, await text(answer)], 'without Accept').toEqual([
      200,
      expect.stringContaining('"result":{}'),
    ]);
  });

  test('in another character set or media type than UTF-8 JSON is refused', async () => {
    const ping = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    for (const type of [
      'application/json; charset=utf-8',
      'application/json; charset="UTF-8"',
      'application/json;charset=utf8',
    ])
      expect([type, (await postMcp(ping, { 'content-type': type })).status]).toEqual([type, 200]);
    for (const [type, status] of [
      ['application/json; charset=latin1', 400],
      ['text/plain', 415],
    ] as const)
      expect([type, (await postMcp(ping, { 'content-type': type })).status]).toEqual([type, status]);
  });
});
