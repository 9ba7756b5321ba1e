/** Apps in a governance file: the key is referenced, read, checked, stored sealed and never shown; the installation is the connection's secret. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { putConnection } from '../../broker/store/connections.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, shared } from '../world/world.ts';
import { Governed, openBroker, titles } from './governance-world.ts';

const pairOf = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength });
const pair = pairOf(2048);
const PKCS1 = pair.privateKey.export({ format: 'pem', type: 'pkcs1' }) as string;
const PKCS8 = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
const BODY = PKCS1.split('\n')[3]!;

const FILE = `platforms:
  codehost:
    use: github
    auth: { type: app, app_id: "4711", private_key: { file: app.pem }, installation_id: "42" }
connections:
  acme: { platform: codehost }
`;
const BY_CONNECTION = FILE.replace(', installation_id: "42"', '').replace(
  '{ platform: codehost }',
  '{ platform: codehost, secret: { env: INSTALLATION } }',
);

describe.each(STORES)(`Apps in governance files on %s${postgresNote}`, (store) => {
  const broker = shared(() => openBroker(store));
  const governed = fresh(async () => (await Governed.make(broker)).secret('file:app.pem', PKCS1));

  const connection = async () => {
    const [one] = (await governed.present()).connections;
    const place = { table: 'connections' as const, organisationId: governed.id, rowId: one!.id };
    return one!.credential && broker.vault.open(place, one!.credential).toString();
  };

  test('are applied once, sealed; an export references the key, and applies without a change', async () => {
    const { plan } = await governed.apply(FILE);
    expect(plan.warnings).toEqual([]);
    expect(await connection()).toBe('42');
    const text = await exportGovernance(broker, governed.id, governed.now);
    for (const file of [FILE, text]) expect((await governed.plan(file)).changes).toEqual([]);
    expect(text).toContain('file: app.pem');
    for (const { value } of (await governed.present()).platformSecrets)
      expect(Buffer.from(value).includes(BODY)).toBe(false);
    for (const told of [text, JSON.stringify(plan)]) expect(told).not.toContain(BODY);
  });

  test('a new key and a new installation are shown as changed, and stored', async () => {
    await governed.apply(FILE);
    governed.secret('file:app.pem', PKCS8);
    const other = FILE.replace('"42"', '"43"');
    expect((await governed.plan(other)).changes.flatMap(({ details }) => details)).toEqual([
      expect.stringContaining('auth: '),
      'auth.private_key: changed',
      'secret: changed',
    ]);
    await governed.apply(other);
    expect(await connection()).toBe('43');
  });

  test('each connection may have an installation of its own, as its secret', async () => {
    governed.secret('env:INSTALLATION', '7');
    await governed.apply(BY_CONNECTION);
    expect(await connection()).toBe('7');
    governed.secret('env:INSTALLATION', 'ghp_0123456789abcdef');
    expect(await governed.refusal(BY_CONNECTION)).toEqual([
      expect.stringContaining("the value of env:INSTALLATION is not the number of an App's installation"),
    ]);
    const none = BY_CONNECTION.replace(', secret: { env: INSTALLATION }', '').replace('acme:', 'other:');
    expect((await governed.plan(none)).warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('has no App installation yet'),
    ]);
  });

  test('an installation that an owner gave a connection stays, and another one follows its platform', async () => {
    await governed.apply(FILE);
    const [acme] = (await governed.present()).connections;
    const own = { ...acme!, id: crypto.randomUUID(), label: 'other', is_default: 0 } as const;
    const place = { table: 'connections' as const, organisationId: governed.id, rowId: own.id };
    await putConnection(broker.store.db, { ...own, credential: broker.vault.seal(place, '7') });
    const numbers = async () =>
      (await governed.present()).connections.map(({ id, label, credential }) => [
        label,
        broker.vault.open({ ...place, rowId: id }, credential!).toString(),
      ]);
    const text = await exportGovernance(broker, governed.id, governed.now);
    expect((await governed.apply(text)).plan.changes).toEqual([]);
    expect(Object.fromEntries(await numbers())).toEqual({ acme: '42', other: '7' });
    const { plan } = await governed.apply(text.replace('"42"', '"43"'));
    expect(titles(plan.changes)).toEqual(['update platform codehost', 'update connection acme']);
    expect(Object.fromEntries(await numbers())).toEqual({ acme: '43', other: '7' });
  });

  test('a number from a reference is replaced when the file names it in the platform instead, and is exported so', async () => {
    governed.secret('env:INSTALLATION', '7');
    await governed.apply(BY_CONNECTION);
    await governed.apply(FILE);
    expect(await connection()).toBe('42');
    const text = await exportGovernance(broker, governed.id, governed.now);
    expect(text).not.toContain('INSTALLATION');
    expect((await governed.plan(text)).changes).toEqual([]);
  });

  const encrypted = pair.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' });
  test.each([
    ['PKCS#8', PKCS8, undefined],
    ['text', 'a-token-0123456789', 'is no private key in PEM form'],
    ['without line breaks', PKCS1.replaceAll('\n', '\\n'), 'is no private key that can be read'],
    ['half of one', PKCS1.slice(0, 800), 'is no private key that can be read'],
    ['encrypted', encrypted as string, 'is a private key behind a passphrase'],
    ['public', pair.publicKey.export({ format: 'pem', type: 'spki' }) as string, 'is a public key'],
    ['two', PKCS1 + PKCS8, 'holds several PEM blocks'],
    ['short', pairOf(1024).privateKey.export({ format: 'pem', type: 'pkcs1' }) as string, 'is an RSA key of 1024 bits'],
    [
      'of an elliptic curve',
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
      'is a key of type ec',
    ],
  ])('a key that is %s is accepted or refused with the reason', async (_, key, problem) => {
    governed.secret('file:app.pem', key);
    if (problem === undefined) return void (await governed.apply(FILE));
    const refused = await governed.refusal(FILE);
    expect(refused).toEqual([expect.stringMatching(/^governance\.yaml:4:\d+: .*the value of file:app\.pem/)]);
    expect(refused[0]).toContain(problem);
    expect(refused[0]).not.toContain(BODY);
  });
});

test('a key made by openssl in the format that GitHub uses is accepted', async () => {
  const made = execFileSync('openssl', ['genrsa', '-traditional', '2048'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const { APP_KEY, readRsaKey } = await import('../../broker/token-source/rsa-key.ts');
  expect(made.toString()).toContain('BEGIN RSA PRIVATE KEY');
  expect(readRsaKey(made.toString(), APP_KEY)).toMatchObject({ ok: true });
});
