/** Keys inserted into the database by a person without the master key: their signatures must not be accepted. */
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../broker/crypto/canonical.ts';
import { generateSigningKey, importSigningKey } from '../../broker/crypto/key-set.ts';
import { adoptKeys } from '../../broker/key-authenticity.ts';
import { loadKeys } from '../../broker/keys.ts';
import { logSigner } from '../../broker/receipt-log/log-keys.ts';
import { generateNoteKey } from '../../broker/receipt-log/note.ts';
import { verifierKeys } from '../../broker/receipt-log/read-log.ts';
import { publishedSecretKeys } from '../../broker/secret-keys.ts';
import { send } from '../world/agent.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

/** A log that collects its messages. */
function collectingLog() {
  const logged: unknown[] = [];
  const note = (object: unknown) => void logged.push(object);
  return { logged, log: { error: note, warn: note } };
}

describe.each(STORES)(`keys written into the database without the master key, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  beforeAll(async () => {
    await world.demoOrganisation();
    await logSigner(world.running.broker);
  });
  const published = async (path: string): Promise<string[]> =>
    (await send(world.running.baseUrl + path, {})).body.keys.map(({ kid }: { kid: string }) => kid);
  /** A forged key, whose private half is not in the store. */
  const forged = (use: 'evidence' | 'issuing') => {
    const { kid, publicJwk, privatePkcs8 } = generateSigningKey();
    const row = { kid, use, public_jwk: JSON.stringify(publicJwk), created_at: 1, activates_at: 1, retired_at: 2 };
    return { kid, row, key: importSigningKey({ kid, privatePkcs8 }) };
  };
  /** Returns what a process that starts on this store now logs, and which keys it has. */
  const loadAgain = async () => {
    const { broker } = world.running;
    const { logged, log } = collectingLog();
    await adoptKeys(broker.store, broker.vault, log);
    return { keys: await loadKeys(broker.store, broker.vault, { now: broker.clock(), log }), logged };
  };

  test('an inserted key of receipts is not published and not used for verification, and is logged', async () => {
    const { broker } = world.running;
    const { kid, row, key } = forged('evidence');
    const before = await published('/.well-known/svc-receipt-keys.json');
    await world.db.insertInto('signing_keys').values(row).execute();
    await broker.keys.refresh();
    expect(await published('/.well-known/svc-receipt-keys.json')).toEqual(before);
    expect(broker.keys.set('evidence').verifyKeys.has(kid)).toBe(false);
    const { keys, logged } = await loadAgain();
    expect(keys.published('evidence')).not.toContain(kid);
    expect(logged).toEqual([{ security: true, kid, use: 'evidence' }]);
    expect(key.kid).toBe(kid);
  });

  test('a token signed by an inserted key is rejected', async () => {
    const { kid, row, key } = forged('issuing');
    await world.db.insertInto('signing_keys').values(row).execute();
    await world.running.broker.keys.refresh();
    const token = await new SignJWT({ sub: 'agent', scope: 'mcp' })
      .setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt' })
      .setIssuer(world.running.baseUrl)
      .setAudience(world.running.baseUrl)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(key.privateKey);
    const answer = await send(`${world.running.baseUrl}/v1/agents/me`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(answer.status).toBe(401);
    expect(await published('/v1/oauth/jwks.json')).not.toContain(kid);
  });

  test('an authenticator is valid for one key and one use only, not for another key or another use', async () => {
    const { broker } = world.running;
    const { kid, row } = forged('evidence');
    const own = await world.db
      .selectFrom('signing_keys')
      .selectAll()
      .where('use', '=', 'evidence')
      .where('authenticator', 'is not', null)
      .executeTakeFirstOrThrow();
    await world.db
      .insertInto('signing_keys')
      .values({ ...row, authenticator: own.authenticator })
      .execute();
    await broker.keys.refresh();
    expect(broker.keys.published('evidence')).not.toContain(kid);
    const issuing = broker.keys.signer('issuing', broker.clock()).kid;
    await world.db.updateTable('signing_keys').set({ use: 'evidence' }).where('kid', '=', issuing).execute();
    await broker.keys.refresh();
    expect(broker.keys.published('evidence')).not.toContain(issuing);
    await world.db.updateTable('signing_keys').set({ use: 'issuing' }).where('kid', '=', issuing).execute();
    await broker.keys.refresh();
    expect(broker.keys.signer('issuing', broker.clock()).kid).toBe(issuing);
  });

  test('an inserted key of the log is not among the verifier keys', async () => {
    const { broker } = world.running;
    const { publicKey } = generateNoteKey();
    const before = await verifierKeys(broker, 'a/log');
    expect(before).toHaveLength(1);
    const own = await world.db.selectFrom('log_keys').selectAll().executeTakeFirstOrThrow();
    const public_key = publicKey.toString('base64');
    await world.db
      .insertInto('log_keys')
      .values({ id: sha256Hex(publicKey), public_key, created_at: 1, retired_at: 2 })
      .execute();
    // A row with the id of the genuine key, but another public half.
    await world.db.updateTable('log_keys').set({ public_key }).where('private_key', 'is not', null).execute();
    expect(await verifierKeys(broker, 'a/log')).toEqual([]);
    await world.db
      .updateTable('log_keys')
      .set({ public_key: own.public_key })
      .where('private_key', 'is not', null)
      .execute();
    expect(await verifierKeys(broker, 'a/log')).toEqual(before);
  });

  test('the published encryption key is derived from its private half, whatever public half is stored', async () => {
    const { broker } = world.running;
    const before = JSON.parse(await publishedSecretKeys(broker, broker.clock()));
    const { publicJwk } = generateSigningKey();
    await world.db
      .updateTable('secret_keys')
      .set({ public_jwk: JSON.stringify(publicJwk) })
      .execute();
    expect(JSON.parse(await publishedSecretKeys(broker, broker.clock()))).toEqual(before);
    const { kid } = before.keys[0];
    const other = generateSigningKey();
    await world.db
      .updateTable('secret_keys')
      .set({ kid: other.kid, public_jwk: JSON.stringify(other.publicJwk) })
      .execute();
    await expect(publishedSecretKeys(broker, broker.clock())).rejects.toThrow();
    await world.db.updateTable('secret_keys').set({ kid }).execute();
  });

  test('keys from before authenticators are adopted, also retired ones; a key that an older release adds is, while its private half proves it', async () => {
    const { broker } = world.running;
    await world.db.deleteFrom('signing_keys').where('authenticator', 'is', null).execute();
    const retired = forged('evidence');
    await world.db.insertInto('signing_keys').values(retired.row).execute();
    await world.db.updateTable('signing_keys').set({ authenticator: null }).execute();
    await world.db.updateTable('log_keys').set({ authenticator: null }).execute();
    const { keys } = await loadAgain();
    expect(keys.published('evidence')).toContain(retired.kid);
    expect(await verifierKeys(broker, 'a/log')).not.toEqual([]);
    const added = await keys.rotate('issuing', broker.clock());
    await world.db.updateTable('signing_keys').set({ authenticator: null }).where('kid', '=', added.kid).execute();
    await keys.refresh();
    await world.db
      .updateTable('signing_keys')
      .set({ private_key: null, retired_at: 3 })
      .where('kid', '=', added.kid)
      .execute();
    const later = await loadAgain();
    expect(later.keys.published('issuing')).toContain(added.kid);
    expect(later.logged).toEqual([]);
  });

  test('a start reports when the broker created none of the keys that can sign', async () => {
    const { broker } = world.running;
    const before = await world.db.selectFrom('signing_keys').selectAll().where('use', '=', 'root').execute();
    await world.db
      .updateTable('signing_keys')
      .set({ authenticator: Buffer.from('none') })
      .where('use', '=', 'root')
      .execute();
    await expect(
      loadKeys(broker.store, broker.vault, { now: broker.clock(), log: collectingLog().log }),
    ).rejects.toThrow(/None of the stored root keys .* Restore a backup/);
    for (const { kid, authenticator } of before)
      await world.db.updateTable('signing_keys').set({ authenticator }).where('kid', '=', kid).execute();
  });
});
