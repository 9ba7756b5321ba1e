import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { runFile } from '../../broker/run-file.ts';
import { send, TestAgent } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, startWorld, type World } from '../world/world.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const CLIENT = join(import.meta.dirname, '../world/mcp-connect-program.ts');
const BASE_URL = 'https://broker.example';
let world: World;
let here: string;
let control: ReturnType<typeof createServer>;
const said: string[] = [];
beforeAll(async () => {
  const ports = Array.from({ length: 28_232 }, (_, at) => 32_768 + at);
  world = await startWorld(
    'sqlite',
    { BASE_URL },
    { before: async () => ({ allowPrivate: ports.flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]) }) },
  );
  here = JSON.parse(readFileSync(runFile(world.running.broker.config.dataFolder), 'utf8')).url;
  control = createServer((request, response) => {
    (async () => {
      let text = '';
      for await (const piece of request) text += piece;
      const { url, context } = JSON.parse(text);
      return await connectAndCall(url, context);
    })().then(
      (done) => response.end(JSON.stringify(done)),
      (error) => response.writeHead(500).end(String(error?.stack)),
    );
  });
  await new Promise<void>((done) => control.listen(0, '127.0.0.1', done));
});
afterAll(() => control.close());

async function connectAndCall(url: string, context: any) {
  const organisation = await world.organisation();
  const { client_id, client_secret } = context;
  await organisation.platform({
    id: 'tools',
    manifest: {
      kind: 'mcp',
      base_url: url,
      auth: { type: 'oauth2', ...(client_id && { client_id }) },
      scopes: { 'tools:all': ['tool *'] },
    },
    secret: null,
  });
  const connection = await organisation.connection('tools', { secret: null });
  const cookie = `__Host-svc_owner=${mintOwnerSession(world.running.broker, organisation.owner).token}`;
  const headers = { cookie, 'x-svc-csrf': '1', origin: BASE_URL };
  const begun = await send(`${here}/owner/connections/${connection}/oauth/start`, { method: 'POST', headers });
  if (begun.status !== 200) {
    said.push(`start ${begun.status} ${begun.text}`);
    return { begun: begun.text };
  }
  const authorize = begun.body.authorization_url;
  said.push(authorize);
  const consented = await send(authorize, {});
  const back = consented.headers.get('location');
  if (!back?.startsWith(BASE_URL)) {
    said.push(`authorize ${consented.status} ${back} ${consented.text}`);
    return {};
  }
  const connected = await send(here + back.slice(BASE_URL.length), { headers: { cookie, accept: 'text/html' } });
  said.push(`callback ${connected.status} ${/<p[^>]*>([^<]*)/.exec(connected.text)?.[1]}`);
  const agent = new TestAgent({
    ...(await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } })),
    baseUrl: here,
  });
  const list: any = await agent.act({
    platform: 'tools',
    endpoint: '/tools',
    method: 'GET',
    scope: 'tools:all',
  } as never);
  said.push(`list ${list.status} ${list.text.slice(0, 300)}`);
  for (const { name } of list.body?.data?.tools ?? []) {
    const called = await agent.act({
      platform: 'tools',
      endpoint: `/tools/${name}`,
      method: 'POST',
      scope: 'tools:all',
      data: {},
    } as never);
    said.push(`call ${called.status} ${called.text.slice(0, 300)}`);
  }
  return { said };
}
const S = (
  process.env.SC ??
  'metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration 2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback resource-mismatch offline-access-scope offline-access-not-supported authorization-server-migration iss-supported iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch client-credentials-jwt client-credentials-basic'
).split(' ');
test.each(S)(
  '%s',
  async (name) => {
    said.length = 0;
    const folder = newFolder();
    const { port } = control.address() as AddressInfo;
    const ran = await promisify(execFile)(
      process.execPath,
      [SUITE, 'client', '--command', `${process.execPath} ${CLIENT}`, '--scenario', `auth/${name}`, '-o', folder],
      { timeout: 60_000, env: { ...process.env, CONTROL_URL: `http://127.0.0.1:${port}` } },
    ).catch((e) => e);
    const run = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((one) => one.endsWith('checks.json'))!;
    const checks: any[] = JSON.parse(readFileSync(join(folder, run), 'utf8'));
    console.log(
      '=====',
      name,
      '\n',
      said.join('\n '),
      '\n',
      checks
        .filter(({ status }) => status !== 'INFO')
        .map(
          ({ id, status, errorMessage, description }) =>
            `${status} ${id} ${status === 'SUCCESS' ? '' : (errorMessage ?? description)}`,
        )
        .join('\n '),
    );
  },
  90_000,
);
