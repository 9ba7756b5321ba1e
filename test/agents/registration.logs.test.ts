/** Tokens are part of addresses and bodies here: none of them may appear in the log. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { CompactEncrypt, importJWK } from 'jose';
import { sql } from 'kysely';
import { describe, expect, test, vi } from 'vitest';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { expectStatus, jsonPost, makeKeyPair, send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { childOf } from '../world/child.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

/** Sends a request of exactly these bytes. Returns the answer. */
async function raw(url: string, request: string): Promise<string> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.end(request.replaceAll('\n', '\r\n'));
  return await text(socket);
}

describe.each(ONE_STORE)(`the log of a broker on %s${postgresNote}`, (store) => {
  test('has no token of any kind, no key and no secret, at the most verbose level, although every request fails', async () => {
    // One broker prepares the organisation, and makes room for another whose log is read.
    const world = await startWorld(store);
    const organisation = await world.organisation();
    const agent = await organisation.agent({ grants: {} });
    const register = async () => {
      const { body } = await send(
        `${world.running.baseUrl}/v1/register`,
        jsonPost({
          owner_id: organisation.owner.id,
          agent_name: `a ${Math.random()}`,
          requested_scopes: [],
        }),
      );
      return body.registration_token as string;
    };
    const [waiting, approved] = [await register(), await register()];
    expect((await organisation.ask('POST', `/v1/register/approve/${approved}`)).status).toBe(200);
    const bootstrap = (await organisation.ask('POST', `/owner/agents/${agent.id}/bootstrap-token`, { rotate: true }))
      .body.bootstrap_token;
    const invite = (await organisation.ask('POST', '/owner/invites', { agent_name: 'invited' })).body.bind_secret;
    await organisation.platform();
    const authorized = await organisation.ask('POST', '/owner/secret-authorizations', {
      agent: agent.id,
      platform: 'demo',
      scopes: ['demo:read'],
    });
    const authorization: string = authorized.body.authorization;
    const asking = await organisation.agent({ name: 'asking', grants: { demo: { scopeList: ['demo:read'] } } });
    const asked = await asking.post('/v1/access-request', { platform: 'demo', scope: 'demo:write' });
    const request: string = asked.body.request_token;
    expect([authorization, request].map((token) => token.slice(0, 4))).toEqual(['sat_', 'req_']);
    const child = await childOf(world, organisation, asking, { grants: [{ platform: 'demo', scopes: ['demo:read'] }] });
    const bearers = [asking.token(), child.bearer];
    const baseUrl = world.running.baseUrl;
    const sealedSecret = 'CANARY-sealed-secret-0123456789';
    await world.running.stop();

    const { port } = new URL(baseUrl);
    const process = spawnBroker({ ...world.environment, PORT: port, LOG_LEVEL: 'trace' });
    const url = (await process.serve())!;
    expect(url, process.output().stderr).toBe(baseUrl);
    const stored =
      store === 'postgres'
        ? openPostgres(world.environment.DATABASE_URL!, { connections: 1, onError: () => {} })
        : undefined;
    try {
      const publicPem = makeKeyPair().publicPem;
      const post = (path: string, body: unknown) =>
        send(url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        });
      const everything = async () => {
        const statuses: number[] = [];
        for (const token of [waiting, approved, 'reg_x']) {
          for (const what of ['status', 'claim-key', 'stream', 'nothing']) {
            const aborted = new AbortController();
            const answer = fetch(`${url}/v1/register/${what}/${token}?token=${token}`, { signal: aborted.signal });
            const { status } = await answer;
            statuses.push(status);
            aborted.abort();
          }
          statuses.push((await post(`/v1/register/approve/${token}`, { x: token })).status);
          await raw(url, `GET /v1/register/status/${token}%ff HTTP/1.1\nHost: localhost\nConnection: close\n\n`);
          await raw(url, `GET /v1/register/status/${token} HTTP/1.1\nHost: a\nHost: b\n\n`);
          await raw(url, `GET /v1/register/status/${token}\u0000 HTTP/1.1\n\n`);
          await raw(url, `BREW /v1/register/status/${token} HTTP/1.1\nHost: localhost\n\n`);
        }
        for (const secret of [bootstrap, invite]) {
          for (const path of ['/v1/agents/bind', '/v1/invites/bind']) {
            await post(path, { bootstrap_token: secret, public_key_pem: 'x' });
            await post(path, { bind_secret: secret, public_key_pem: 'x' });
            await post(path, `{"bootstrap_token":"${secret}"`);
          }
        }
        // A bearer in its place, and where no route reads it.
        const addresses = ['/v1/agents/me', `/v1/access-request/status/${request}`, '/v1/nothing'];
        for (const [path, bearer] of addresses.flatMap((one) => bearers.map((of) => [one, of] as const))) {
          const headers = { authorization: `Bearer ${bearer}` };
          statuses.push((await send(`${url}${path}?access_token=${bearer}`, { headers })).status);
          await send(`${url}${path}?access_token=${bearer}`, {});
          await raw(
            url,
            `GET ${path}?access_token=${bearer} HTTP/1.1\nHost: a\nHost: b\nAuthorization: Bearer ${bearer}\n\n`,
          );
        }
        // An invalid request: the secret is not sealed.
        const unsealed = { authorization, secret: sealedSecret };
        for (const body of [
          { agent_id: agent.id, platform_id: 'demo', encrypted_secret: JSON.stringify(unsealed) },
          { agent_id: agent.id, platform_id: 'demo', ...unsealed },
          `{"encrypted_secret":"${authorization}${sealedSecret}`,
        ])
          await post('/v1/bind-secret', body);
        const { keys } = (await send(`${url}/.well-known/svc-secret-keys.json`, {})).body;
        const encrypted_secret = await new CompactEncrypt(Buffer.from(JSON.stringify(unsealed)))
          .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: keys[0].kid })
          .encrypt(await importJWK(keys[0], 'ECDH-ES'));
        statuses.push(
          (await post('/v1/bind-secret', { agent_id: agent.id, platform_id: 'demo', encrypted_secret })).status,
        );
        return statuses;
      };
      expect(await everything()).toContain(200);
      if (stored) {
        // Now the store fails for each of them, and the error is logged.
        await sql`alter table registrations rename to registrations_away`.execute(stored.db);
        await sql`alter table one_time_tokens rename to one_time_tokens_away`.execute(stored.db);
        await sql`alter table invites rename to invites_away`.execute(stored.db);
        await sql`alter table secret_authorizations rename to secret_authorizations_away`.execute(stored.db);
        await sql`alter table access_requests rename to access_requests_away`.execute(stored.db);
        expect(await everything()).toContain(500);
        await expectStatus(500, post('/v1/agents/bind', { bootstrap_token: bootstrap, public_key_pem: publicPem }));
        expect((await post('/v1/invites/bind', { bind_secret: invite, public_key_pem: publicPem })).status).toBe(500);
        await vi.waitUntil(() => process.output().stderr.includes('unforeseen error'), { timeout: 10_000 });
        await sql`alter table one_time_tokens_away rename to one_time_tokens`.execute(stored.db);
        await sql`alter table invites_away rename to invites`.execute(stored.db);
        // Binding a key destroys one that was not collected.
        await sql`alter table registrations_away rename to registrations`.execute(stored.db);
      }
      await expectStatus(200, post('/v1/agents/bind', { bootstrap_token: bootstrap, public_key_pem: publicPem }));
      expect(
        (await post('/v1/invites/bind', { bind_secret: invite, public_key_pem: makeKeyPair().publicPem })).status,
      ).toBe(200);
    } finally {
      await stored?.close();
      process.signal('SIGTERM');
      await process.ended;
    }
    const { stderr, stdout } = process.output();
    const written = stderr + stdout;
    expect(written).toContain('the broker has stopped');
    for (const secret of [waiting, approved, bootstrap, invite, authorization, request, sealedSecret])
      expect(written.includes(secret.slice(0, 20)), 'a token in the log').toBe(false);
    for (const bearer of bearers) {
      expect(written.includes(bearer.split('.')[2]!), 'a signature in the log').toBe(false);
      expect(written.includes(bearer.split('.')[1]!), 'claims in the log').toBe(false);
    }
    expect(written).not.toMatch(/(reg|abt|inv|sat|req|cns|sgn)_[\w-]{20}|PRIVATE KEY/);
    if (store === 'postgres') expect(written).toContain('/v1/register/status/{token}');
  }, 180_000);
});
