/** A cookie alone is not sufficient for a request: CSRF protection, and the attributes of cookies. */

import { readFileSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { givenWorld, shared, startWorld } from '../world/world.ts';

describe('a session in a browser', () => {
  let cookie: string;
  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  const agent = shared(() => organisation.agent({ grants: {} }));
  beforeAll(() => {
    cookie = `${sessionCookieName(world.running.baseUrl)}=${mintOwnerSession(world.running.broker, organisation.owner).token}`;
  });

  const ask = (method: string, path: string, headers: Record<string, string>): Promise<Answer> =>
    send(world.running.baseUrl + path, {
      method,
      headers: { cookie, ...(method === 'POST' && { 'content-type': 'application/json' }), ...headers },
      ...(method === 'POST' && { body: '{}' }),
    });
  const suspend = (headers: Record<string, string>) => ask('POST', `/owner/agents/${agent.id}/suspend`, headers);
  const isActive = async () => (await agent.get('/v1/agents/me')).body.agent_status === 'active';

  test('a sign-in by a link, and its end, are recorded with owner, method, address and session', async () => {
    const { url } = await signInLink(world.running.broker, organisation.owner);
    const token = new URL(url).hash.slice(1);
    const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
      send(world.running.baseUrl + path, jsonPost(body, { 'x-svc-csrf': '1', ...headers }));
    const answer = await expectStatus(200, post('/owner/sign-in', { token }));
    const mine = answer.headers.getSetCookie()[0]!.split(';')[0]!;
    expect((await post('/owner/sign-out', {}, { cookie: mine })).status).toBe(200);
    expect((await post('/owner/sign-in', { token })).status).toBe(410);
    const [out, signedIn] = (await organisation.ask('GET', '/owner/audit')).body.rows;
    const by = { by: organisation.owner.id, how: 'console' };
    const session = decodeJwt(mine.slice(`${sessionCookieName(world.running.baseUrl)}=`.length)).jti;
    expect(signedIn).toMatchObject({
      reason: 'owner_signed_in',
      detail: expect.stringMatching(/^from (127\.0\.0\.1|::1)/),
    });
    expect(signedIn.flags.change).toEqual({ ...by, session, sign_in: 'link' });
    expect([out.reason, out.flags.change]).toEqual(['owner_signed_out', { ...by, session }]);
    // The address is in no receipt (specification, Receipt).
    const receipt = await organisation.ask('GET', `/v1/audit/${signedIn.id}/receipt`);
    expect(decodeJwt(receipt.body.receipt)).toMatchObject({ change: { sign_in: 'link', session } });
    expect(JSON.stringify(decodeJwt(receipt.body.receipt))).not.toMatch(/127\.0\.0\.1|::1/);
  });

  const FOREIGN: [string, Record<string, string>][] = [
    ['the Origin of another site', { origin: 'https://evil.test' }],
    ['Origin: null, as of a sandboxed frame', { origin: 'null' }],
    ['an empty Origin', { origin: '' }],
    ['another port of this host, which SameSite does not tell apart', { origin: 'http://localhost:1' }],
    ['an Origin that begins like ours', { origin: 'http://localhost.evil.test' }],
    ['Sec-Fetch-Site: cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['Sec-Fetch-Site: same-site', { 'sec-fetch-site': 'same-site' }],
    ['a Sec-Fetch-Site that no browser sends', { 'sec-fetch-site': 'same-origin, cross-site' }],
  ];

  test.each(FOREIGN)('AP-16 with %s nothing is changed, and nothing returned', async (_name, headers) => {
    expectEnvelope(await suspend({ 'x-svc-csrf': '1', ...headers }), 403, 'forbidden');
    expect(await isActive()).toBe(true);
    expectEnvelope(await ask('GET', '/owner/agents', headers), 403, 'forbidden');
    expectEnvelope(await ask('GET', `/v1/audit/${crypto.randomUUID()}/receipt`, headers), 403, 'forbidden');
    // The same headers with a bearer are accepted: no browser adds a bearer by itself.
    const bearer = {
      authorization: `Bearer ${cookie.slice(`${sessionCookieName(world.running.baseUrl)}=`.length)}`,
      cookie: '',
    };
    expect((await ask('GET', '/owner/agents', { ...headers, ...bearer })).status).toBe(200);
  });

  test('AP-16 without the header that no form can send nothing is changed, whatever the origin', async () => {
    for (const headers of [{}, { origin: world.running.baseUrl }, { 'sec-fetch-site': 'same-origin' }])
      expectEnvelope(await suspend(headers), 403, 'forbidden');
    const workload = `/owner/agents/${agent.id}/workload`;
    expectEnvelope(await ask('DELETE', workload, {}), 403, 'forbidden');
    expectEnvelope(await ask('DELETE', workload, { 'x-svc-csrf': '1' }), 404, 'not_found');
    // The address bar may only read.
    expectEnvelope(await suspend({ 'x-svc-csrf': '1', 'sec-fetch-site': 'none' }), 403, 'forbidden');
    expect(await isActive()).toBe(true);
  });

  test('control case: the console’s own requests are accepted, by either host name of the broker', async () => {
    for (const headers of [{}, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-origin' }])
      expect((await ask('GET', '/owner/agents', headers)).status).toBe(200);
    const console = { 'x-svc-csrf': '1', 'sec-fetch-site': 'same-origin' };
    expect((await suspend({ ...console, origin: world.running.baseUrl })).status).toBe(200);
    expect(await isActive()).toBe(false);
    const here = world.running.baseUrl.replace('localhost', '127.0.0.1');
    const answer = await send(`${here}/owner/agents/${agent.id}/resume`, {
      method: 'POST',
      headers: { cookie, ...console, origin: here, 'content-type': 'application/json' },
      body: '{}',
    });
    expect([answer.status, await isActive()]).toEqual([200, true]);
  });

  test('a request of a page that shows another owner reads and changes nothing', async () => {
    const other = await organisation.addOwner('admin');
    const from = (id: string) => ({ 'x-svc-csrf': '1', 'sec-fetch-site': 'same-origin', 'x-svc-owner': id });
    for (const answer of [await suspend(from(other.id)), await ask('GET', '/owner/agents', from(other.id))]) {
      expectEnvelope(answer, 403, 'forbidden');
      expect(answer.body.signed_in_as).toBe(organisation.owner.email);
      expect(answer.body.detail).toContain(organisation.owner.email);
    }
    expect(await isActive()).toBe(true);
    expect((await ask('GET', '/owner/agents', from(organisation.owner.id))).status).toBe(200);
  });

  test('of two cookies with the same name the first counts', async () => {
    const name = sessionCookieName(world.running.baseUrl);
    expect((await ask('GET', '/owner/agents', { cookie: `${cookie}; ${name}=x` })).status).toBe(200);
    expectEnvelope(await ask('GET', '/owner/agents', { cookie: `${name}=x; ${cookie}` }), 401, 'invalid_token');
    expectEnvelope(await ask('GET', '/owner/agents', { cookie: `${name}=` }), 401, 'missing_token');
  });
});

test('signing in at a broker on another port of the host replaces no session', async () => {
  const browser = new Browser();
  const brokers = [];
  for (const world of [await startWorld(), await startWorld()]) {
    const { baseUrl, broker } = world.running;
    const { owner } = await world.organisation();
    const token = new URL((await signInLink(broker, owner)).url).hash.slice(1);
    const answer = await send(`${baseUrl}/owner/sign-in`, jsonPost({ token }));
    const [name = '', value = ''] = answer.headers.get('set-cookie')!.split(/[=;]/);
    // As browsers do, which keep cookies by name, host and path.
    browser.cookies = browser.cookies.filter((one) => one.name !== name);
    browser.cookies.push({ name, value, host: 'localhost', path: '/' });
    brokers.push({ me: `${baseUrl}/owner/me`, owner });
  }
  for (const { me, owner } of brokers) {
    const answer = await send(me, { headers: { cookie: browser.cookieFor(me) } });
    expect(answer.body.email, answer.text).toBe(owner.email);
  }
});

test('with https the cookie is limited to this host and to https', async () => {
  const world = await startWorld('sqlite', { BASE_URL: 'https://broker.acme.example' });
  const organisation = await world.organisation();
  const { broker } = world.running;
  const here: string = JSON.parse(readFileSync(runFile(broker.config.dataFolder), 'utf8')).url;
  const link = await signInLink(broker, organisation.owner);
  const answer = await send(`${here}/owner/sign-in`, jsonPost({ token: new URL(link.url).hash.slice(1) }));
  const set = answer.headers.get('set-cookie')!;
  expect(set).toMatch(/^__Host-svc_owner=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/);
  const [cookie] = set.split(';');
  expect((await send(`${here}/owner/me`, { headers: { cookie: cookie! } })).status).toBe(200);
  // A cookie without the prefix could have been set over http, or by another host of the domain.
  const plain = cookie!.replace('__Host-', '');
  expectEnvelope(await send(`${here}/owner/me`, { headers: { cookie: plain } }), 401, 'missing_token');
  const out = await send(`${here}/owner/sign-out`, {
    method: 'POST',
    headers: { cookie: cookie!, 'x-svc-csrf': '1', origin: 'https://broker.acme.example' },
  });
  expect(out.headers.get('set-cookie')).toMatch(/^__Host-svc_owner=; Path=\/; Max-Age=0; .*; Secure$/);
  // The same host over http is another origin.
  const http = { cookie: cookie!, origin: 'http://broker.acme.example', host: 'broker.acme.example' };
  expectEnvelope(await send(`${here}/owner/me`, { headers: http }), 403, 'forbidden');
});
