/** Audit sinks in a governance file: the section is complete, secrets are sealed and exported as references, and positions are kept. */
import { describe, expect, test } from 'vitest';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { changeSink } from '../../broker/store/audit-sinks.ts';
import { findGovernanceVersion } from '../../broker/store/governance.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, shared } from '../world/world.ts';
import { Governed, openBroker, problemsOf } from './governance-world.ts';

const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const SIEM = '  siem: { kind: webhook, url: "https://siem.example/in", secret: { env: KEY } }\n';
const COLLECTOR = '  collector: { kind: otlp, url: "https://otel.example", format: json }\n';
const BUCKET =
  '  bucket: { kind: s3, url: "https://s3.example", region: eu-central-1, bucket: audit, secret: { access_key_id: { env: ID }, secret_access_key: { file: s3.key } } }\n';
const FOLDER = '  folder: { kind: file, max_bytes: 4096, from: beginning }\n';
const FILE = `audit_sinks:\n${SIEM}${COLLECTOR}${BUCKET}${FOLDER}`;
const SECRETS = {
  'env:KEY': KEY,
  'env:ID': 'AKIAIOSFODNN7EXAMPLE',
  'file:s3.key': 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLE',
};

describe.each(STORES)(`audit sinks in governance files on %s${postgresNote}`, (store) => {
  const broker = shared(() => openBroker(store));
  const governed = fresh(async () => {
    const made = await Governed.make(broker);
    for (const [key, value] of Object.entries(SECRETS)) made.secret(key, value);
    return made;
  });

  const sinks = async () => (await governed.present()).sinks;
  const sinkOf = async (name: string) => (await sinks()).find((one) => one.name === name)!;
  const secretOf = async (name: string) => {
    const found = await sinkOf(name);
    const place = { table: 'audit_sinks' as const, organisationId: governed.id, rowId: found.id };
    return found.secret && broker.vault.open(place, found.secret).toString();
  };
  const changesOf = async (text: string) => (await governed.apply(text)).plan.changes;

  test('are applied once, sealed; an export applies without a change, and unlisted sinks are removed', async () => {
    const { plan } = await governed.apply(FILE);
    expect(plan.changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).toEqual(
      ['siem', 'collector', 'bucket', 'folder'].map((name) => `create audit_sink ${name}`),
    );
    for (const secret of Object.values(SECRETS)) expect(JSON.stringify(plan)).not.toContain(secret);
    expect(await secretOf('siem')).toBe(KEY);
    expect(JSON.parse((await secretOf('bucket'))!)).toEqual({
      access_key_id: SECRETS['env:ID'],
      secret_access_key: SECRETS['file:s3.key'],
    });
    expect(await secretOf('collector')).toBeNull();
    const exported = await exportGovernance(broker, governed.id, governed.now);
    for (const secret of Object.values(SECRETS)) expect(exported).not.toContain(secret);
    expect(exported).toContain('env: KEY');
    for (const text of [exported, FILE]) expect(await changesOf(text)).toEqual([]);
    // Applied to another broker, the export has the same result.
    const elsewhere = await Governed.make(broker);
    for (const [key, value] of Object.entries(SECRETS)) elsewhere.secret(key, value);
    const own = exported.replace(/^organisation: .*\n/m, '');
    await elsewhere.apply(own);
    expect((await exportGovernance(broker, elsewhere.id, governed.now)).replace(/^organisation: .*\n/m, '')).toBe(own);
    expect(await changesOf(`audit_sinks:\n${SIEM}${COLLECTOR}${FOLDER}`)).toEqual([
      {
        action: 'delete',
        kind: 'audit_sink',
        name: 'bucket',
        details: ['kind: s3', 'rows not yet acknowledged by its receiver: 0'],
      },
    ]);
    expect(await changesOf('policies: {}')).toEqual([]);
    expect(await sinks()).toHaveLength(3);
    await governed.apply('audit_sinks: {}');
    expect(await sinks()).toEqual([]);
  });

  test('a change of settings, format or secret keeps a sink’s position, and clears its retry delay', async () => {
    await governed.apply(FILE);
    const before = await sinkOf('siem');
    await changeSink(broker.store.db, before, { next_index: 41, status: 'paused', failures: 3, retry_at: 9e15 });
    governed.secret('env:KEY', KEY.replaceAll('Bw', 'CA'));
    const changed = FILE.replace('siem.example/in', 'siem.example/new').replace(
      'env: KEY }',
      'env: KEY }, format: json',
    );
    expect(await changesOf(changed)).toEqual([
      {
        action: 'update',
        kind: 'audit_sink',
        name: 'siem',
        details: [
          'format: ocsf → json',
          'settings: {"url":"https://siem.example/in"} → {"url":"https://siem.example/new"}',
          'secret: changed',
        ],
      },
    ]);
    expect(await sinkOf('siem')).toMatchObject({
      id: before.id,
      next_index: 41,
      status: 'paused',
      retry_at: null,
      format: 'json',
    });
    expect(await secretOf('siem')).toBe(KEY.replaceAll('Bw', 'CA'));
    expect(await changesOf(changed)).toEqual([]);
  });

  test('a change of kind replaces the sink, which continues at the same position, and stays paused', async () => {
    await governed.apply(FILE);
    const before = await sinkOf('siem');
    await changeSink(broker.store.db, before, { next_index: 41, status: 'paused' });
    await governed.apply(FILE.replace(SIEM, '  siem: { kind: otlp, url: "https://otel.example" }\n'));
    expect(await sinkOf('siem')).toMatchObject({
      kind: 'otlp',
      next_index: 41,
      status: 'paused',
      secret: null,
      secret_reference: null,
    });
    expect((await sinkOf('siem')).id).not.toBe(before.id);
  });

  test('a generated signing key is kept without a reference, and is not reused as a header value', async () => {
    await governed.apply(FILE);
    const unnamed = FILE.replace(', secret: { env: KEY }', '');
    expect(await changesOf(unnamed)).toEqual([]);
    expect(await secretOf('siem')).toBe(KEY);
    const inHeader = unnamed.replace('siem.example/in"', 'siem.example/in", header: x-token');
    expect((await governed.refusal(inHeader)).join()).toContain('is missing; it is what is sent in the header');
    expect(await secretOf('siem')).toBe(KEY);
  });

  test('a change of a sink changes the governance version, its position does not', async () => {
    await governed.apply(FILE);
    const version = () => findGovernanceVersion(broker.store.db, governed.id);
    const before = await version();
    const sink = await sinkOf('siem');
    await changeSink(broker.store.db, sink, { next_index: 7, batch_end: 9, failures: 1, last_error: 'x', retry_at: 1 });
    expect(await version()).toBe(before);
    await changeSink(broker.store.db, sink, { format: 'json' });
    expect(await version()).not.toBe(before);
  });

  test.each([
    ['a webhook without a secret', '  s: { kind: webhook, url: "https://a.example/" }', 'secret: is missing'],
    ['storage without a key', '  s: { kind: s3, url: "https://a.example", region: a, bucket: abc }', 'access_key_id'],
    ['a key that is none', '  s: { kind: webhook, url: "https://a.example/", secret: { env: WEAK } }', 'whsec_'],
    ['a secret of a file', '  s: { kind: file, secret: { env: WEAK } }', 'a file has none'],
    ['a kind that is none', '  s: { kind: pigeon }', 'kind'],
    ['an unknown member', '  s: { kind: file, url: "https://a.example/" }', 'url'],
    ['a row to begin with', '  s: { kind: file, from: 7 }', 'from'],
    ['a name that is no file’s', '  "../s": { kind: file }', 'audit_sinks'],
    ['a secret in the file', `  s: { kind: webhook, url: "https://a.example/", secret: ${KEY} }`, 'env: NAME'],
    [
      'more than the log is read for',
      Array.from({ length: 21 }, (_, i) => `  s${i}: { kind: file }`).join('\n'),
      'more than 20 sinks',
    ],
  ])('%s is refused, with the allowed value', async (_what, entry, said) => {
    governed.secret('env:WEAK', 'weak-value');
    const file = `audit_sinks:\n${entry}\n`;
    const found = problemsOf(file);
    const problems = (found.length > 0 ? found : await governed.refusal(file)).join('\n');
    expect(problems).toContain(said);
    expect(problems).not.toContain('weak-value');
    expect(await sinks()).toEqual([]);
  });
});
