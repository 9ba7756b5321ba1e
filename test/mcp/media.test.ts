/** Bodies that are not JSON, through the MCP tools: what a model sends and receives. */
import { expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { callTool, type McpProcess, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const world = givenWorld();
const organisation = shared(() =>
  world.demoOrganisation({
    manifest: {
      scopes: { ...DEMO_SCOPES, 'demo:put': ['PUT /files/*'] },
      bodies: { 'PUT /files/*': ['list', 'text', 'bytes'] },
    },
  }),
);
const agent = shared(() =>
  organisation.agent({ grants: { demo: { scopeList: [...Object.keys(DEMO_SCOPES), 'demo:put'] } } }),
);
async function connected(): Promise<McpProcess> {
  const mcp = startMcp(writeProfile(agent as TestAgent), ['--wait', '0']);
  await shakeHands(mcp);
  return mcp;
}

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const BASE64 = PNG.toString('base64');
const answers = (type: string | undefined, body: Buffer) => {
  world.upstream.answer = (_, response) => response.writeHead(200, type ? { 'content-type': type } : {}).end(body);
};
const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1' };
const PUT = { platform: 'demo', scope: 'demo:put', endpoint: '/files/1', method: 'PUT' };

const SHOWN: [string, object][] = [
  ['image/png', { type: 'image', data: BASE64, mimeType: 'image/png' }],
  ['audio/wav', { type: 'audio', data: BASE64, mimeType: 'audio/wav' }],
  [
    'application/pdf',
    {
      type: 'resource',
      resource: {
        uri: expect.stringMatching(/^agent-broker:answer\/[0-9a-f-]{36}$/),
        mimeType: 'application/pdf',
        blob: BASE64,
      },
    },
  ],
];
/** Bytes without MCP content: an archive, no media type, a picture type that models do not accept, and a picture that is too large. */
const TOLD: [string | undefined, Buffer][] = [
  ['application/zip', PNG],
  [undefined, PNG],
  ['image/tiff', PNG],
  ['image/png', Buffer.concat([PNG, Buffer.alloc(1024 * 1024)])],
];

test('bytes become MCP content where there is a type for them, and are described otherwise; text stays text', async () => {
  const mcp = await connected();
  for (const [type, block] of SHOWN) {
    answers(type, PNG);
    const { content, structuredContent, isError } = await callTool(mcp, 'read_platform', READ);
    expect(content.at(-1)).toEqual(block);
    expect(structuredContent).toMatchObject({ status: 'answered', media_type: type, bytes: PNG.length });
    expect(structuredContent).not.toHaveProperty('data');
    expect(JSON.stringify(content.slice(0, -1))).not.toContain(BASE64);
    expect(content[0].text).toContain(`16 bytes of ${type}`);
    expect(isError).toBeUndefined();
  }
  for (const [type, body] of TOLD) {
    answers(type, body);
    const { content, structuredContent } = await callTool(mcp, 'read_platform', READ);
    expect(content.map((one: { type: string }) => one.type)).toEqual(['text', 'text']);
    expect(structuredContent).toMatchObject({ status: 'answered', bytes: body.length });
    expect(JSON.stringify(content)).not.toContain(BASE64.slice(0, 8));
    expect(content[0].text).toContain('/proxy/');
  }
  answers('text/csv', Buffer.from('a,b\n'));
  const { content, structuredContent } = await callTool(mcp, 'read_platform', READ);
  expect(structuredContent).toMatchObject({ data: 'a,b\n' });
  expect(structuredContent).not.toHaveProperty('media_type');
  expect(content).toHaveLength(1);
});

test('a binary result of a held call is returned in the same way', async () => {
  const mcp = await connected();
  const call = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { a: 1 } };
  const { approval_id } = (await callTool(mcp, 'write_platform', call)).structuredContent;
  answers('image/png', PNG);
  await organisation.approve(approval_id);
  await agent.get(`/v1/approvals/${approval_id}?wait=10`);
  const done = await callTool(mcp, 'check_approval', { approval_id });
  expect(done.content.at(-1)).toEqual(SHOWN[0]?.[1]);
  expect(done.structuredContent).toMatchObject({ status: 'answered', media_type: 'image/png', bytes: PNG.length });
});

test('pictures, sound and files in the result of a tool of an MCP server become MCP content; type and size stay in data', async () => {
  const mcp = await connected();
  const image = (data: string, mimeType = 'image/png') => ({ type: 'image', data, mimeType });
  const file = { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: BASE64 };
  const parts = [
    { type: 'text', text: 'Taken.' },
    image(BASE64),
    { type: 'audio', data: BASE64, mimeType: 'audio/wav' },
    { type: 'resource', resource: file },
    // Not shown: a type that models do not accept, and base64 because of which a client would refuse the result.
    image(BASE64.padStart(8_000, 'A'), 'image/tiff'),
    image('not base64!'.repeat(1_000)),
    image(BASE64, 'image/tiff'),
    { type: 'resource_link', uri: 'file:///b.txt', name: 'b' },
    { type: 'resource', resource: { uri: 'file:///c.txt', text: 'c' } },
  ];
  world.upstream.answer = (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ content: parts }));
  const { content, structuredContent, isError } = await callTool(mcp, 'read_platform', READ);
  expect(content.slice(2)).toEqual([parts[1], parts[2], parts[3]]);
  const { length: bytes } = PNG;
  expect(structuredContent.data.content).toEqual([
    parts[0],
    { type: 'image', mimeType: 'image/png', bytes },
    { type: 'audio', mimeType: 'audio/wav', bytes },
    { type: 'resource', resource: { uri: file.uri, mimeType: file.mimeType, bytes } },
    { type: 'image', mimeType: 'image/tiff', bytes: 5_998 },
    { type: 'image', mimeType: 'image/png', bytes: expect.any(Number) },
    ...parts.slice(6),
  ]);
  expect(content[0].text).toMatch(/no text: 3 next to this text, 2 not shown here/);
  expect(isError).toBeUndefined();
});

test('of a result of a held call that was not kept whole, the rest is described, and base64 is left out', async () => {
  const mcp = await connected();
  const call = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { a: 2 } };
  const { approval_id } = (await callTool(mcp, 'write_platform', call)).structuredContent;
  const result = {
    content: [{ type: 'image', data: Buffer.alloc(300_000).toString('base64'), mimeType: 'image/png' }],
  };
  world.upstream.answer = (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
  await organisation.approve(approval_id);
  await agent.get(`/v1/approvals/${approval_id}?wait=10`);
  const { content, structuredContent } = await callTool(mcp, 'check_approval', { approval_id });
  expect(structuredContent).toMatchObject({
    status: 'answered',
    truncated: true,
    bytes: JSON.stringify(result).length,
  });
  expect(structuredContent.data).toMatch(
    /^\{"content":\[\{"type":"image","data":"\(\d+ characters of base64 are left out\)$/,
  );
  expect(content[0].text).toMatch(/The rest was not kept.*Do not submit the call again/);
});

test('lists, texts and files are sent unchanged', async () => {
  const mcp = await connected();
  world.upstream.answer = undefined;
  const bodies: [object, string, string][] = [
    [{ list: ['a'] }, 'application/json', '["a"]'],
    [{ text: '# x', content_type: 'text/markdown' }, 'text/markdown', '# x'],
    [{ base64: 'AQI=', content_type: 'image/png' }, 'image/png', '\u0001\u0002'],
  ];
  for (const [body, type, bytes] of bodies) {
    const answer = await callTool(mcp, 'write_platform', { ...PUT, body });
    expect(answer.structuredContent, JSON.stringify(answer)).toMatchObject({
      status: 'answered',
      upstream_status: 200,
    });
    expect(world.upstream.seen.at(-1)).toMatchObject({ method: 'PUT', body: bytes });
    expect(world.upstream.seen.at(-1)?.headers['content-type']).toBe(type);
  }
  const wrongs: [object, string][] = [
    [{ body: {} }, 'give one of list, text and base64'],
    [{ body: { list: [], text: '' } }, 'give one of list, text and base64'],
    [{ body: { text: 'x' }, data: {} }, 'give data or body, not both'],
  ];
  for (const [wrong, words] of wrongs) {
    const answer = await callTool(mcp, 'write_platform', { ...PUT, ...wrong });
    expect(answer).toMatchObject({ isError: true, structuredContent: { code: 'invalid_arguments' } });
    expect(answer.content[0].text).toContain(words);
  }
});
