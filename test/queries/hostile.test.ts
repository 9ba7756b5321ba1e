/** Hostile requests to AuthZEN and TRQP, and an unavailable store: in doubt the answer is a refusal, in the form of RFC 7807. */
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { updateOrganisation } from '../../broker/store/organisations.ts';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import { expectProblem } from '../world/problem.ts';
import { exchange } from '../world/raw.ts';
import { hideTables, startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, shared, startWorld } from '../world/world.ts';

const PATHS = [
  '/v1/authzen/access',
  '/access/v1/evaluation',
  '/access/v1/evaluations',
  '/v1/trqp/authorization',
  '/v1/trqp/recognition',
] as const;

const publish = (organisation: Organisation) =>
  organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
/** A body that every one of the routes accepts. */
const bodyFor = (agent: TestAgent, did: string) => ({
  subject: { type: 'agent', id: agent.id },
  action: { name: 'demo:read' },
  resource: { type: 'platform', id: 'demo' },
  entity_id: agent.agentId,
  authority_id: did,
});
/** TRQP takes both names as text. */
const inTrqp = <T extends object>(body: T, path: string): T | object =>
  path.includes('trqp') ? { ...body, action: 'demo:read', resource: 'demo' } : body;

describe('hostile requests', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => publish(organisation));
  const agent = shared(() => organisation.agent());
  const text = (path: string, more: object = {}) =>
    JSON.stringify({ ...inTrqp(bodyFor(agent, world.running.broker.did), path), ...more });
  const post = (path: string, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> =>
    agent.request('POST', path, { body, headers: { 'content-type': 'application/json', ...headers } });
  const yes = ({ status, body, text: whole }: Answer) => {
    expect(status, whole).toBe(200);
    expect(body.decision ?? body.authorized ?? body.recognized).toBe(true);
  };

  test.each(PATHS)('%s: gzip is accepted, and a decompression bomb is a 413', async (path) => {
    const gzip = { 'content-encoding': 'gzip' };
    yes(await post(path, gzipSync(text(path)), gzip));
    const bomb = gzipSync(text(path, { filling: 'x'.repeat(20 * 1024 * 1024) }));
    expect(bomb.length).toBeLessThan(64 * 1024);
    expectProblem(await post(path, bomb, gzip), 413, 'payload_too_large');
    expectProblem(await post(path, Buffer.from(text(path)), gzip), 400, 'invalid_request');
  });

  test.each(PATHS)('%s: only UTF-8 is accepted', async (path) => {
    expectProblem(await post(path, Buffer.from(text(path, { a: 'ü' }), 'latin1')), 400, 'invalid_request');
    expectProblem(await post(path, Buffer.from(text(path), 'utf16le')), 400, 'invalid_request');
    const utf16 = { 'content-type': 'application/json; charset=utf-16' };
    expectProblem(await post(path, text(path), utf16), 400, 'invalid_request');
    yes(await post(path, text(path, { a: 'ü' })));
  });

  test.each(PATHS)("%s: names of JavaScript's built-in members are ordinary names", async (path) => {
    yes(await post(path, `${text(path).slice(0, -1)},"__proto__":{"decision":false},"constructor":{"prototype":1}}`));
    for (const name of ['subject', 'entity_id'])
      expectProblem(await post(path, `{"__proto__":${JSON.stringify({ [name]: 1 })}}`), 400, 'invalid_request');
    expect(({} as { decision?: unknown }).decision).toBeUndefined();
  });

  test.each(PATHS)('%s: two Authorization headers are a 400', async (path) => {
    const body = text(path);
    const bearer = `Authorization: Bearer ${agent.token()}\r\n`;
    const port = Number(new URL(world.running.baseUrl).port);
    const ask = (authorization: string) =>
      exchange(
        port,
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    expect((await ask(bearer)).status).toBe(200);
    const twice = await ask(bearer + bearer);
    expect([twice.status, JSON.parse(twice.body).error]).toEqual([400, 'invalid_request']);
    expect(twice.head).toMatch(/content-type: application\/problem\+json/i);
    const basicFirst = await ask(`Authorization: Basic YTpi\r\n${bearer}`);
    expect([basicFirst.status, JSON.parse(basicFirst.body).error]).toEqual([400, 'invalid_request']);
  });

  test('concurrent requests each get their own answer', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const path = PATHS[i % PATHS.length]!;
        return i % 3 === 0 ? post(path, '{') : post(path, text(path), { 'x-request-id': `r-${i}` });
      }),
    );
    for (const [i, answer] of answers.entries()) {
      if (i % 3 === 0) expectProblem(answer, 400, 'invalid_request');
      else {
        yes(answer);
        expect(answer.headers.get('x-request-id')).toBe(`r-${i}`);
      }
    }
  });

  test('TRQP ignores the session cookie of a browser, and AuthZEN refuses it from another site', async () => {
    const { broker, baseUrl } = world.running;
    const cookie = `${sessionCookieName(baseUrl)}=${mintOwnerSession(broker, organisation.owner).token}`;
    for (const path of PATHS) {
      const ask = (headers: Record<string, string>) =>
        send(baseUrl + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', cookie, ...headers },
          body: text(path),
        });
      const foreign = await ask({ origin: 'https://evil.example' });
      if (path.includes('trqp')) {
        yes(foreign);
        expect(foreign.headers.get('ratelimit-policy')).toContain('trqp-public');
      } else {
        expectProblem(foreign, 403, 'forbidden');
        yes(await ask({ 'x-svc-csrf': '1' }));
      }
    }
  });
});

describe.each(ONE_STORE)(`the store is unavailable on %s${postgresNote}`, (store) => {
  test('ST-01 no query is answered with yes while the store is unavailable, and all are once it is back', async () => {
    const cut = store === 'postgres' ? await startFaultProxy(await newDatabase()) : undefined;
    const world = await startWorld('sqlite', { ...(cut && { DATABASE_URL: cut.url }) });
    const organisation = await world.organisation();
    await organisation.platform();
    await publish(organisation);
    const agent = await organisation.agent();
    const did = world.running.broker.did;
    const headers = { 'content-type': 'application/json', 'x-request-id': 'r-1' };
    const everyone = () =>
      Promise.all(
        PATHS.flatMap((path) => {
          const body = JSON.stringify(inTrqp(bodyFor(agent, did), path));
          const asked = [agent.request('POST', path, { headers, body })];
          if (path.includes('trqp')) asked.push(send(world.running.baseUrl + path, { method: 'POST', headers, body }));
          return asked;
        }),
      );
    const expectYes = (answers: Answer[]) => {
      for (const { status, body, text } of answers)
        expect([status, body.decision ?? body.authorized ?? body.recognized], text).toEqual([200, true]);
    };
    expectYes(await everyone());
    await cut?.cut();
    const show = cut ? cut.repair : await hideTables(world.db);
    for (const answer of await everyone()) {
      expectProblem(answer, 503, 'store_unavailable');
      expect([answer.headers.get('retry-after'), answer.headers.get('x-request-id')]).toEqual(['5', 'r-1']);
      expect(answer.text).not.toMatch(/sqlite|postgres|no such table|ECONN/i);
    }
    await show();
    expectYes(await everyone());
  });
});

test("the metadata and the names of agents and authorities use the broker's public address", async () => {
  const port = await freePort();
  const world = await startWorld('sqlite', { PORT: String(port), BASE_URL: 'https://broker.example' });
  const organisation = await world.organisation();
  await organisation.platform();
  const agent = await organisation.agent();
  await updateOrganisation(world.db, organisation.id, { publish_identity_documents: 1 });
  const here = `http://127.0.0.1:${port}`;
  expect((await send(`${here}/.well-known/authzen-configuration`, {})).body).toEqual({
    policy_decision_point: 'https://broker.example',
    access_evaluation_endpoint: 'https://broker.example/v1/authzen/access',
    access_evaluations_endpoint: 'https://broker.example/access/v1/evaluations',
  });
  const ask = async (entity_id: string, authority_id: string) => {
    const body = JSON.stringify({ entity_id, authority_id, action: 'demo:read', resource: 'demo' });
    const headers = { 'content-type': 'application/json' };
    return (await send(`${here}/v1/trqp/authorization`, { method: 'POST', headers, body })).body.authorized;
  };
  const ours = [
    `did:web:broker.example:agents:${agent.agentId}`,
    `spiffe://broker.example/orgs/${organisation.id}/agents/${agent.agentId}`,
  ];
  for (const entity of ours)
    for (const authority of ['did:web:broker.example', `did:web:broker.example:orgs:${organisation.id}`])
      expect([entity, authority, await ask(entity, authority)]).toEqual([entity, authority, true]);
  expect(await ask(`did:web:localhost%3A${port}:agents:${agent.agentId}`, 'did:web:broker.example')).toBe(false);
  expect(await ask(ours[0]!, `did:web:localhost%3A${port}`)).toBe(false);
});
