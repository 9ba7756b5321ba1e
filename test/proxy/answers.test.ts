/** Which parts of an answer reach the agent. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { ALLOW_ALL, CANARY, givenWorld, READ, shared } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

describe('answers', () => {
  const world = givenWorld('sqlite');
  const organisation = shared(() => world.demoOrganisation());
  beforeEach(() => {
    world.upstream.answer = undefined;
  });

  const agentOf = (platform: string): Promise<TestAgent> =>
    organisation.agent({ rules: ALLOW_ALL, grants: { [platform]: {} } });

  test('a partial answer to which a manifest mask applies is withheld, through /v1/actions and /proxy', async () => {
    await organisation.platform({ id: 'masked', manifest: { masks: { 'GET /items/*': ['clone_token'] } } });
    const agent = await agentOf('masked');
    const whole = JSON.stringify({ id: 7, clone_token: 'TOPSECRETTOKEN', name: 'x' });
    world.upstream.answer = ({ headers }, response) => {
      const [, from] = /^bytes=(\d+)-/.exec(String(headers.range ?? '')) ?? [];
      response.setHeader('content-type', 'application/json');
      if (from === undefined) return void response.end(whole);
      response.writeHead(206, { 'content-range': `bytes ${from}-${whole.length - 1}/${whole.length}` });
      response.end(whole.slice(Number(from)));
    };
    const raw = rawClient(() => agent);
    expect((await raw('GET', '/proxy/masked-main/items/7')).text).toContain('"clone_token":"[masked]"');
    const range = { range: 'bytes=23-' };
    const parts = [
      await raw('GET', '/proxy/masked-main/items/7', { headers: range }),
      await agent.act({ ...READ, platform: 'masked', endpoint: '/items/7', headers: range }),
    ];
    for (const part of parts) {
      expect(part.text).toContain('upstream_response_blocked');
      expect(part.text).not.toContain('TOPSECRET');
    }
  });

  test('the address of the next page in the body leads through the broker, if the manifest lists it', async () => {
    const manifest = { answer_urls: { 'GET /**': ['@odata.nextLink', 'next'] } };
    await organisation.platform({ id: 'paged', manifest });
    const agent = await agentOf('paged');
    const base = `${world.upstream.url}/v1`;
    const page = `{"@odata.nextLink": "${base}/items?$skiptoken=a%20b","next":null,"id":12345678901234567890,"value":[{"next":"${base}/x"}]}`;
    world.upstream.answer = (_, response) => response.setHeader('content-type', 'application/json').end(page);
    const proxied = `${agent.baseUrl}/proxy/paged-main/items?$skiptoken=a%20b`;
    expect((await rawClient(() => agent)('GET', '/proxy/paged-main/items')).text).toBe(
      `{"@odata.nextLink":"${proxied}","next":null,"id":12345678901234567890,"value":[{"next":"${base}/x"}]}`,
    );
    world.upstream.answer = (_, response) =>
      response.setHeader('content-type', 'application/json').end(` [${page}, [${page}], {}, 1.0, "a]" ] `);
    expect((await rawClient(() => agent)('GET', '/proxy/paged-main/items')).text).toBe(
      `[{"@odata.nextLink":"${proxied}","next":null,"id":12345678901234567890,"value":[{"next":"${base}/x"}]},[${page}],{},1.0,"a]"]`,
    );
  });

  test('CX-02 a credential that is not ASCII is found in headers and redirects, in the bytes of both charsets', async () => {
    const secret = 'user:pässwörd-0123456789-abcdef';
    await organisation.platform({ id: 'basic', manifest: { auth: { type: 'basic' } }, secret });
    const agent = await agentOf('basic');
    for (const charset of ['utf8', 'latin1'] as const)
      for (const status of ['200 OK', '301 Moved Permanently']) {
        const echoed = Buffer.from(
          `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nx-echo: ${secret}\r\nx-request-id: ${secret}\r\nlocation: /a/${secret}\r\n` +
            'content-length: 2\r\nconnection: close\r\n\r\nhi',
          charset,
        );
        world.upstream.answer = (_request, response) => void response.socket?.end(echoed);
        const raw = await rawClient(() => agent)('GET', '/proxy/basic-main/items');
        const told = [...raw.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
        const acted = await agent.act({ ...READ, platform: 'basic', endpoint: '/items' });
        for (const text of [told, acted.text]) {
          expect(text, `${charset} ${status}`).not.toContain('-0123456789-');
          expect(text).not.toContain('rd-012');
        }
      }
  });

  test('the answer of an approved call is withheld from an agent that was suspended, or lost its grant, meanwhile', async () => {
    for (const end of ['suspend', 'grant'] as const) {
      const agent = await organisation.agent();
      const raw = rawClient(() => agent);
      let finish = () => {};
      const asked = new Promise<void>((resolve) => {
        world.upstream.answer = (_request, response) => {
          finish = () => void response.end('{"secret":"of the platform"}');
          resolve();
        };
      });
      const waiting = raw('POST', '/proxy/demo-main/items', { body: '{"n":1}', headers: { 'x-svc-wait': '60' } });
      const pending = async () => (await organisation.pending())[0]?.approval_id;
      await expect.poll(pending).toBeDefined();
      const approved = organisation.approve(await pending());
      await asked;
      const taken =
        end === 'suspend'
          ? await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {})
          : await organisation.ask('DELETE', `/owner/agents/${agent.agentId}/grants/demo`);
      expect(taken.status, taken.text).toBe(200);
      await pause(50);
      finish();
      await approved;
      const answer = await expectStatus(403, waiting);
      expect(answer.body.error).toBe(end === 'suspend' ? 'agent_halted' : 'no_permission_record');
      expect(answer.text).toContain('The call was approved and made');
      expect(answer.text).not.toContain('of the platform');
    }
  });

  test.each([
    { what: 'a short body', bytes: 10, isCut: false },
    { what: 'a body over a mebibyte', bytes: 2_000_000, isCut: false },
    { what: 'a body that is broken off', bytes: 10, isCut: true },
  ])('a 401 with $what is reported as a refused credential, and the connection is marked', async ({ bytes, isCut }) => {
    const id = `refusing-${bytes}-${isCut}`;
    await organisation.platform({ id });
    const agent = await agentOf(id);
    world.upstream.answer = (_request, response) => {
      response.writeHead(401, { 'content-type': 'text/plain', 'content-length': bytes });
      response.write('x'.repeat(isCut ? bytes - 1 : bytes), () => (isCut ? response.destroy() : response.end()));
    };
    const refused = await rawClient(() => agent)('GET', `/proxy/${id}-main/items`);
    expect(refused).toMatchObject({ status: 409, body: { error: 'platform_reauth_needed' } });
    const { body } = await organisation.ask('GET', '/owner/connections');
    expect(body.connections.find((one: { label: string }) => one.label === `${id}-main`)).toMatchObject({
      status: 'reauth_needed',
    });
  });

  test('a query with a name of Object.prototype is signed like any other', async () => {
    const secret = JSON.stringify({ access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY });
    const auth = { type: 'aws_sigv4', region: 'us-east-1', service: 's3' };
    await organisation.platform({ id: 'stored', manifest: { auth }, secret });
    const agent = await agentOf('stored');
    for (const name of ['constructor', 'toString=1', 'hasOwnProperty']) {
      await expectStatus(200, rawClient(() => agent)('GET', `/proxy/stored-main/items?${name}`));
    }
  });
});
