/** A killed broker leaves a file with its address and credential. Another program that took its port since gets neither credentials nor data. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { commandHost } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { newFolder } from '../world/stores.ts';

const CANARY = 'CANARYstale0123456789abcdefghij';
const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
const LOCAL_TOKEN = `local_${CANARY}`;
const seen: { path: string; authorization: string | undefined; body: string }[] = [];
/** The answer of the other program to every request. */
let says: { status: number; body: string };

beforeAll(async () => {
  const stranger = createServer(async (request, response) => {
    seen.push({ path: request.url!, authorization: request.headers.authorization, body: await text(request) });
    response.writeHead(says.status, { 'content-type': 'application/json', 'x-correlation-id': 'x' }).end(says.body);
  });
  const port = await listenOnLoopback(stranger);
  mkdirSync(join(data, 'run'), { recursive: true });
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(join(data, 'run', 'broker.json'), JSON.stringify({ url, pid: 1, local_token: LOCAL_TOKEN }));
  writeFileSync(
    join(folder, 'governance.yaml'),
    'organisation: acme\nplatforms:\n  codehost: { use: github }\nconnections:\n  main: { platform: codehost, secret: { env: SECRET } }\n',
  );
});

const ANSWERS = [
  { status: 200, body: JSON.stringify({ service: 'proxy', token: 'a.b.c', proof: 'x'.repeat(43), changes: [] }) },
  { status: 200, body: '<html></html>' },
  { status: 404, body: JSON.stringify({ error: 'not_found', detail: 'No such route.' }) },
];

test.each([
  ['apply', 'governance.yaml'],
  ['plan', 'governance.yaml'],
  ['owner', 'link'],
  ['keys', 'rotate', 'evidence'],
  ['agent', 'create', 'bot'],
  ['agent', 'create', 'bot', '--invite', `inv_${CANARY}`],
])('%s %s sends only a challenge to another program on the broker’s port', async (...words) => {
  for (const answer of ANSWERS) {
    says = answer;
    seen.length = 0;
    const env = { AGENT_BROKER_DATA: data, SECRET: CANARY, AGENT_BROKER_OWNER_TOKEN: '' };
    const { code, stderr } = await hosted(words, { cwd: folder, env });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/is not the broker that wrote .*broker\.json/)]);
    expect(seen).toEqual([
      {
        path: '/owner/local-proof',
        authorization: undefined,
        body: expect.stringMatching(/^\{"challenge":"[\w-]{32}"\}$/),
      },
    ]);
  }
});

test('a given owner session is not sent there either', async () => {
  says = ANSWERS[0]!;
  seen.length = 0;
  const { code } = await hosted(['inbox'], {
    cwd: folder,
    env: { AGENT_BROKER_DATA: data, AGENT_BROKER_OWNER_TOKEN: CANARY },
  });
  expect([code, seen.map(({ path }) => path)]).toEqual([1, ['/owner/local-proof']]);
  expect(JSON.stringify(seen)).not.toContain(CANARY);
});
