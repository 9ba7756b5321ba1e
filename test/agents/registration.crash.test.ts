/** I6: whenever the process is killed, a key is handed out, a token binds and a secret is stored at most once, and it is recorded. */
import { setTimeout as pause } from 'node:timers/promises';
import { CompactEncrypt, importJWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { jsonPost, makeKeyPair, send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { query } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const ROUNDS = sized(2, 4);
const AT_ONCE = 4;

describe.each(ONE_STORE)(`registration and kill -9 on %s${postgresNote}`, (store) => {
  test('RG-03 I6 a claim, a bind or a sealed secret that was interrupted is never carried out twice, and never partially', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const { keys: sealingKeys } = (await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {})).body;
    /** Sends several secrets concurrently with one authorisation. */
    const sealed = (authorization: string) =>
      Promise.all(
        Array.from({ length: AT_ONCE }, async (_, i) =>
          new CompactEncrypt(Buffer.from(JSON.stringify({ authorization, secret: `secret-number-${i}` })))
            .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: sealingKeys[0].kid })
            .encrypt(await importJWK(sealingKeys[0], 'ECDH-ES')),
        ),
      );
    const rounds: { token: string; bootstrap: string; agent: string; holder: string; secrets: string[] }[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const { body } = await send(
        `${world.running.baseUrl}/v1/register`,
        jsonPost({ owner_id: organisation.owner.id, agent_name: `crash ${i}`, requested_scopes: [] }),
      );
      const token = body.registration_token;
      expect((await organisation.ask('POST', `/v1/register/approve/${token}`)).status).toBe(200);
      const agent = await organisation.agent({ name: `bind ${i}`, grants: {} });
      const made = await organisation.ask('POST', `/owner/agents/${agent.id}/bootstrap-token`, { rotate: true });
      const holder = await organisation.agent({ name: `secret ${i}` });
      const asked = { agent: holder.id, platform: 'demo', label: `sealed-${i}` };
      const { authorization } = (await organisation.ask('POST', '/owner/secret-authorizations', asked)).body;
      const secrets = await sealed(authorization);
      rounds.push({ token, bootstrap: made.body.bootstrap_token, agent: agent.id, holder: holder.id, secrets });
    }
    const pending = await query(world.environment, `select status from agents where name like 'crash %'`);
    expect(pending.map(({ status }) => status)).toEqual(Array(ROUNDS).fill('pending'));
    await world.running.stop();
    const environment = { ...world.environment, PORT: '0' };
    const keys = Array.from({ length: AT_ONCE }, () => makeKeyPair().publicPem);
    const random = makeRandom(store.length);
    const claims = (url: string, token: string) =>
      Array.from({ length: AT_ONCE }, () => send(`${url}/v1/register/claim-key/${token}`, {}));
    const binds = (url: string, bootstrap_token: string, pems: readonly string[]) =>
      pems.map((public_key_pem) => send(`${url}/v1/agents/bind`, jsonPost({ bootstrap_token, public_key_pem })));
    const sends = (url: string, agent_id: string, secrets: readonly string[]) =>
      secrets.map((encrypted_secret) =>
        send(`${url}/v1/bind-secret`, jsonPost({ agent_id, platform_id: 'demo', encrypted_secret })),
      );
    /** Statuses of the answers; an interrupted request has none. */
    const answered = async (asked: ReturnType<typeof send>[]) =>
      (await Promise.allSettled(asked)).map((one) => (one.status === 'fulfilled' ? one.value.status : undefined));
    const count = async (sql: string) => Number((await query(world.environment, sql))[0]!.count);

    for (const { token, bootstrap, agent, holder, secrets } of rounds) {
      const doomed = spawnBroker(environment);
      const url = (await doomed.serve())!;
      expect(url, doomed.output().stderr).toBeDefined();
      const first = Promise.all([
        answered(claims(url, token)),
        answered(binds(url, bootstrap, keys)),
        answered(sends(url, holder, secrets)),
      ]);
      await pause(random() * 25);
      doomed.signal('SIGKILL');
      await doomed.ended;
      const [claimed, bound, taken] = await first;

      const next = spawnBroker(environment);
      const again = (await next.serve())!;
      expect(again, next.output().stderr).toBeDefined();
      const later = await Promise.all([
        answered(claims(again, token)),
        answered(binds(again, bootstrap, keys)),
        answered(sends(again, holder, secrets)),
      ]);
      next.signal('SIGTERM');
      await next.ended;

      const wins = (statuses: (number | undefined)[]) => statuses.filter((status) => status === 200).length;
      for (const [before, after, refused] of [
        [claimed, later[0], 410],
        [bound, later[1], 410],
        [taken, later[2], 400],
      ] as const) {
        expect(wins([...before, ...after])).toBeLessThanOrEqual(1);
        expect(new Set(after.filter((status) => status !== 200))).toEqual(new Set([refused]));
      }
      // One connection, which the agent's grant uses, and one event: all of it, or none.
      const own = `select count(*) as count from grants g join connections c on c.id = g.connection_id and c.organisation_id = g.organisation_id
        where g.agent_id = '${holder}' and c.label like 'sealed-%' and c.credential is not null`;
      expect(await count(own)).toBe(1);
      const secretBound = `select count(*) as count from audit_rows where reason = 'secret_bound' and agent_id = '${holder}'`;
      expect(await count(secretBound)).toBe(1);
      // In the end both were carried out, by any of the requests, and are recorded once.
      const left = `select count(*) as count from registrations where private_key is not null and agent_name = 'crash ${rounds.findIndex((one) => one.token === token)}'`;
      expect(await count(left)).toBe(0);
      const event = `select count(*) as count from audit_rows where reason = 'agent_bound' and agent_id = '${agent}'`;
      expect(await count(event)).toBe(1);
      const [row] = await query(world.environment, `select key_fingerprint from agents where id = '${agent}'`);
      const winner = bound.indexOf(200) >= 0 ? bound.indexOf(200) : later[1].indexOf(200);
      const prints = keys.map((pem) => (parsePublicKey(pem) as { fingerprint: string }).fingerprint);
      if (winner >= 0) expect(row!.key_fingerprint).toBe(prints[winner]);
      else expect(prints).toContain(row!.key_fingerprint);
      // The next round binds the same keys to another agent.
      keys.splice(0, keys.length, ...Array.from({ length: AT_ONCE }, () => makeKeyPair().publicPem));
    }
    const collected = `select count(*) as count from audit_rows where reason = 'registration_key_claimed'`;
    expect(await count(collected)).toBe(ROUNDS);
    const active = `select count(*) as count from agents where name like 'crash %' and status = 'active'`;
    expect(await count(active), 'an agent is active when its key was handed out, and only then').toBe(ROUNDS);
    expect(await count(`select count(*) as count from connections where label like 'sealed-%'`)).toBe(ROUNDS);
  }, 540_000);
});
