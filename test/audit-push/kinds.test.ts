/** Pushing the audit to webhooks, collectors and S3: what is sent, how it is signed, and what is recorded. */
import { Webhook } from 'standardwebhooks';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { changeSink } from '../../broker/store/audit-sinks.ts';
import { type Answer, expectStatus } from '../world/agent.ts';
import { startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { startS3Server } from '../world/servers/s3-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, READ, shared, WRITE } from '../world/world.ts';

const REGION = 'eu-central-1';
const KEY = { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };

const s3 = shared(() => startS3Server(KEY, REGION));
const receiver = shared(() => startAuditReceiver());
beforeEach(() => {
  receiver.status = 204;
  receiver.forget();
  s3.objects.clear();
  s3.puts.length = 0;
});

describe.each(ONE_STORE)(`pushing the audit on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: `${receiver.address},${s3.address}` }));
  const organisation = fresh(() => world.demoOrganisation(receiver.platform));
  const agent = fresh(() => organisation.agent());

  const add = async (sink: object) => {
    const made = await organisation.ask('POST', '/owner/audit-sinks', { name: 'siem', from: 'beginning', ...sink });
    expect(made.status, made.text).toBe(201);
    return made.body;
  };
  const sinks = async () => (await organisation.ask('GET', '/owner/audit-sinks')).body.sinks;

  test('JSON lines to a webhook: signed, each row once and in order, identical to the export of the log', async () => {
    const { secret } = await add({ kind: 'webhook', format: 'json', url: `${receiver.url}/in` });
    for (let i = 0; i < 5; i++) expect((await agent.act(READ)).status).toBe(200);
    const rows = await receiver.waitFor(6);
    expect(rows.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    for (const { body, headers } of receiver.seen) {
      expect(headers['content-type']).toBe('application/x-ndjson');
      const [first, ...more] = body.split('\n').filter(Boolean);
      // The library parses the body as JSON, which works for a single line.
      const signed = headers as Record<string, string>;
      if (more.length === 0) expect(() => new Webhook(secret).verify(body, signed)).not.toThrow();
      expect(() => new Webhook(secret).verify(body.replace(/row/, 'raw'), signed)).toThrow('No matching signature');
      expect(signed['webhook-id']).toMatch(new RegExp(`^audit_.*_${JSON.parse(first!).index}-`));
    }
    const exported = async () =>
      (await organisation.ask('GET', '/owner/log/export')).text
        .split('\n')
        .filter((one) => one.includes('"type":"row"'));
    // The export ends at the newest checkpoint.
    await expect.poll(async () => (await exported()).length).toBe(6);
    expect(receiver.seen.flatMap(({ body }) => body.trim().split('\n'))).toEqual(await exported());
    await expect.poll(async () => (await sinks())[0].rows_behind).toBe(0);
    const [sink] = await sinks();
    expect(sink).toMatchObject({ next_index: 6, rows_behind: 0, failing_since: null, last_error: null });
  });
  test('OCSF events to a webhook: an array, with a header instead of a signature; a test sends no row', async () => {
    const header = { header: 'Authorization', secret: 'Splunk 0123456789-abcdef' };
    const { id } = await add({ kind: 'webhook', url: `${receiver.url}/in`, ...header });
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act({ ...READ, method: 'DELETE', scope: 'demo:read' })).status).toBe(403);
    const rows = await receiver.waitFor(3);
    expect(rows.map(({ reason }) => reason)).toEqual([
      'audit_sink_created',
      'approved',
      expect.stringMatching(/scope/),
    ]);
    for (const { headers, body } of receiver.seen) {
      expect(headers).toMatchObject({ authorization: header.secret, 'content-type': 'application/json' });
      expect(headers).not.toHaveProperty('webhook-signature');
      for (const event of JSON.parse(body))
        expect(event).toMatchObject({ class_uid: 6003, metadata: { version: '1.9.0' } });
      expect(body).not.toContain(header.secret);
    }
    const tested = await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {});
    expect(tested.body).toEqual({ ok: true, detail: 'It would take rows.' });
    expect(receiver.seen.at(-1)!.body).toBe('[]');
    receiver.status = 401;
    expect((await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {})).body).toEqual({
      ok: false,
      detail: 'It answered 401.',
    });
    // Even an error that looks permanent is retried.
    await expect.poll(async () => (await sinks())[0].last_error, { timeout: 5_000 }).toBe('It answered 401.');
    receiver.status = 204;
    await expect.poll(async () => (await sinks())[0].rows_behind, { timeout: 10_000 }).toBe(0);
  });

  test('log records to a collector: each row once; rejected rows are counted and not sent again', async () => {
    const collected: { records: LogRecord[]; resource: unknown }[] = [];
    let answer = '{}';
    const before = receiver.answer;
    receiver.answer = (request, response, body) => {
      if (request.url !== '/v1/logs') return before!(request, response, body);
      for (const { resource, scopeLogs } of JSON.parse(body).resourceLogs)
        collected.push({ resource, records: scopeLogs[0].logRecords });
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    };
    const { id } = await add({ kind: 'otlp', url: receiver.url, secret: 'Bearer collector-token', header: 'x-token' });
    expect((await agent.act(READ)).status).toBe(200);
    const records = () => collected.flatMap((one) => one.records);
    await expect.poll(() => records().length, { timeout: 10_000 }).toBe(2);
    expect(receiver.seen.at(-1)!.headers['x-token']).toBe('Bearer collector-token');
    const [, record] = records();
    const attribute = (name: string) => record!.attributes.find(({ key }) => key === name)?.value;
    expect(attribute('agent_broker.log_index')).toEqual({ intValue: '1' });
    expect(attribute('agent_broker.reason')).toEqual({ stringValue: 'approved' });
    expect(record!.timeUnixNano).toMatch(/^\d{13}000000$/);
    const members = record!.body.kvlistValue.values;
    expect(members.find(({ key }) => key === 'class_uid')?.value).toEqual({ intValue: '6003' });
    answer = JSON.stringify({ partialSuccess: { rejectedLogRecords: '1', errorMessage: 'SECRET-OF-THE-COLLECTOR' } });
    expect((await agent.act(READ)).status).toBe(200);
    await expect.poll(async () => (await sinks())[0].rejected_rows, { timeout: 10_000 }).toBe(1);
    expect((await sinks())[0]).toMatchObject({
      rows_behind: 0,
      last_error: 'It rejected 1 of 1 rows (partial success).',
    });
    expect((await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {})).body.ok).toBe(true);
    expect(records()).toHaveLength(3);
    receiver.answer = before;
  });

  test('integers beyond 64 bits are sent to a collector as doubles: otherwise it would reject the batch, and block all later ones', async () => {
    const limit = { most: 100, per: 'day', of: 'request.body.wei' };
    await organisation.guardrails([{ name: 'wei', effect: 'require_approval', scopes: ['demo:write'], limit }]);
    const paying = await organisation.agent({ rules: ALLOW_ALL });
    const wei = 25e18;
    const held = await expectStatus(202, paying.act({ ...WRITE, data: { wei } }));
    await expectStatus(200, organisation.approve(held.body.approval_id));
    const bodies: string[] = [];
    const before = receiver.answer;
    receiver.answer = (request, response, body) => {
      if (request.url !== '/v1/logs') return before!(request, response, body);
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    };
    await add({ kind: 'otlp', url: receiver.url });
    await expect.poll(() => bodies.join(''), { timeout: 15_000 }).toContain('{"key":"used"');
    receiver.answer = before;
    const sent = bodies.join('');
    expect(sent).toContain(`{"key":"used","value":{"doubleValue":${wei}}}`);
    const integers = [...sent.matchAll(/"intValue":"([^"]*)"/g)].map(([, text]) => text);
    expect(integers.filter((text) => !/^-?\d{1,19}$/.test(text!))).toEqual([]);
  });

  test.each([
    ['', '/v1/logs'],
    ['/', '/v1/logs'],
    ['/otlp/', '/otlp/v1/logs'],
    ['/otlp/v1/logs', '/otlp/v1/logs'],
    ['/v1/logs/', '/v1/logs'],
  ])('the path for logs is appended to the URL of a collector, unless the URL has it: %s', async (address, target) => {
    const { id } = await add({ kind: 'otlp', url: `${receiver.url}${address}` });
    await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {});
    // Rows of the previous case may still be sent to its path.
    expect(receiver.seen.map((one) => one.target)).toContain(target);
  });

  test('objects in S3: signed, gzipped, and a batch that is sent again has the same key and content', async () => {
    const where = { url: s3.url, region: REGION, bucket: 'acme-audit', prefix: 'broker/audit' };
    const { id } = await add({ kind: 's3', format: 'json', ...where, secret: KEY });
    expect((await agent.act(READ)).status).toBe(200);
    const rows = () =>
      [...s3.objects.keys()]
        .filter((key) => key.endsWith('.gz'))
        .toSorted()
        .flatMap((key) => s3.lines(key))
        .map((line) => JSON.parse(line).index);
    await expect.poll(rows, { timeout: 10_000 }).toEqual([0, 1]);
    for (const key of s3.objects.keys())
      expect(key).toMatch(/^\/acme-audit\/broker\/audit\/\d{4}\/\d\d\/\d\d\/\d{12}-\d{12}-[0-9a-f]{8}\.jsonl\.gz$/);
    const before = new Map(s3.objects);
    expect((await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {})).body.ok).toBe(true);
    expect([...s3.objects.keys()].at(-1)).toBe('/acme-audit/broker/audit/agent-broker-test.txt');
    // The state after a crash before the cursor moved.
    const { db } = world.running.broker.store;
    const [key] = before.keys();
    const [, first, last] = /(\d{12})-(\d{12})/.exec(key!)!;
    await changeSink(
      db,
      { organisation_id: organisation.id, id },
      { next_index: Number(first), batch_end: Number(last) + 1 },
    );
    await expect.poll(() => s3.puts.filter((put) => put === key).length, { timeout: 10_000 }).toBe(2);
    expect(s3.objects.get(key!)).toEqual(before.get(key!));
    const wrong = { secret: { ...KEY, secret_access_key: 'another-key-0123456789' } };
    expect((await organisation.ask('POST', `/owner/audit-sinks/${id}/settings`, wrong)).status).toBe(200);
    expect((await organisation.ask('POST', `/owner/audit-sinks/${id}/test`, {})).body.detail).toBe('It answered 403.');
  });

  test('a missing row is reported, and the others are sent; a row that this version cannot read is not skipped', async () => {
    const errors = vi.spyOn(world.running.broker.log, 'error');
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
    await expect.poll(async () => (await organisation.ask('GET', '/owner/log')).body.waiting).toBe(0);
    const calls = world.db.selectFrom('audit_rows').select('id').where('organisation_id', '=', organisation.id);
    const [gone, later] = (await calls.where('kind', '=', 'action').orderBy('id').execute()).map(({ id }) => id);
    const { receipt_format } = await world.db
      .selectFrom('audit_rows')
      .select('receipt_format')
      .where('id', '=', later!)
      .executeTakeFirstOrThrow();
    const setFormat = (format: number | null) =>
      world.db.updateTable('audit_rows').set({ receipt_format: format }).where('id', '=', later!).execute();
    await world.db.deleteFrom('audit_rows').where('id', '=', gone!).execute();
    await setFormat(999);
    const { id } = await add({ kind: 'webhook', format: 'json', url: `${receiver.url}/in` });
    await expect
      .poll(async () => (await sinks())[0].last_error, { timeout: 15_000 })
      .toContain(`The row ${later} cannot be read by this version`);
    expect(receiver.rows(true)).toEqual([]);
    await setFormat(receipt_format);
    const rows = await receiver.waitFor(3);
    expect(rows.map(({ index }) => index)).toEqual([1, 2, 3]);
    expect(errors.mock.calls).toContainEqual([
      expect.objectContaining({ security: true, sink: id }),
      'rows of the receipt log are missing',
    ]);
  });

  test('a receiver that names a time (Retry-After) is not retried before', async () => {
    const before = receiver.answer;
    onTestFinished(() => {
      receiver.answer = before;
    });
    receiver.answer = (_request, response) => void response.writeHead(503, { 'retry-after': '120' }).end();
    const began = world.running.broker.clock();
    await add({ kind: 'webhook', format: 'json', url: `${receiver.url}/in` });
    const retryAt = async () =>
      (
        await world.db
          .selectFrom('audit_sinks')
          .select('retry_at')
          .where('organisation_id', '=', organisation.id)
          .executeTakeFirstOrThrow()
      ).retry_at;
    await expect.poll(retryAt, { timeout: 15_000 }).toBeGreaterThanOrEqual(began + 120_000);
  });

  test('a sink whose stored settings cannot be read is listed with what to do, exported without them, and set again', async () => {
    const { id } = await add({ kind: 'webhook', format: 'json', url: `${receiver.url}/in` });
    await add({ name: 'other', kind: 'webhook', url: `${receiver.url}/other` });
    await changeSink(world.db, { organisation_id: organisation.id, id }, { settings: '{"adress":1}' });
    expect(await sinks()).toMatchObject([
      { name: 'other', settings: { url: `${receiver.url}/other` } },
      { name: 'siem', settings: {}, last_error: expect.stringMatching(/^The stored settings cannot be read, .* set/) },
    ]);
    const exported = await expectStatus(200, organisation.ask('GET', '/owner/governance'));
    expect(exported.text).toContain('siem');
    const document = { audit_sinks: { siem: { kind: 'webhook', format: 'json', url: `${receiver.url}/in` } } };
    const file = { text: JSON.stringify(document), values: {} };
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', file));
    expect(await sinks()).toMatchObject([{ name: 'siem', settings: { url: `${receiver.url}/in` } }]);
    await agent.act(READ);
    await receiver.waitFor(1);
  });

  test('the value of a header does not become the key that signs when the settings of the sink cannot be read', async () => {
    const set = { kind: 'webhook', url: `${receiver.url}/in` };
    const { id } = await add({ ...set, format: 'json', header: 'authorization', secret: 'Bearer of-the-header' });
    const change = (settings: object, secret?: string) =>
      organisation.ask('POST', `/owner/audit-sinks/${id}/settings`, { settings, ...(secret && { secret }) });
    const refused = (answer: Answer) => {
      expect(answer.status).toBe(400);
      expect(answer.text).toContain('secret: is missing');
    };
    const unread = () => changeSink(world.db, { organisation_id: organisation.id, id }, { settings: '{"adress":1}' });
    const apply = (sink: object) => {
      const text = JSON.stringify({ audit_sinks: { siem: { format: 'json', ...sink } } });
      return organisation.ask('POST', '/owner/governance/apply', { text, values: {} });
    };
    await unread();
    refused(await change(set));
    refused(await apply(set));
    // In the header it goes on as before.
    await expectStatus(200, apply({ ...set, header: 'authorization' }));
    await unread();
    await expectStatus(200, change({ ...set, header: 'authorization' }));
    await agent.act(READ);
    // Sinks of the tests before may still push there.
    const keys = () => receiver.seen.map(({ headers }) => headers.authorization);
    await expect.poll(keys).toContain('Bearer of-the-header');
    // And a key that signs is not sent in a header.
    await expectStatus(200, change(set, `whsec_${'a'.repeat(32)}`));
    await unread();
    refused(await change({ ...set, header: 'authorization' }));
    await expectStatus(200, change(set));
    await expectStatus(200, organisation.ask('DELETE', `/owner/audit-sinks/${id}`));
  });

  test('only admins change sinks, changes are recorded, and no secret is returned', async () => {
    const { id, secret } = await add({ kind: 'webhook', url: `${receiver.url}/in`, from: 'now' });
    const change = (body: object) => organisation.ask('POST', `/owner/audit-sinks/${id}/settings`, body);
    expect((await change({ status: 'paused' })).body.status).toBe('paused');
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
    await expect.poll(async () => (await sinks())[0].rows_behind, { timeout: 10_000 }).toBeGreaterThan(3);
    expect(receiver.rows(true).filter(({ reason }) => reason === 'approved')).toEqual([]);
    expect((await change({ status: 'active', from: 'beginning', format: 'json' })).body.next_index).toBe(0);
    await receiver.waitFor(6);
    expect(receiver.seen.at(-1)!.headers['content-type']).toBe('application/x-ndjson');
    expect((await change({ from: 1_000_000 })).body.detail).toMatch(/the receipt log has \d+ rows/);
    expect((await change({ settings: { kind: 'otlp', url: receiver.url } })).status).toBe(400);
    const hostile = [
      { kind: 'webhook', url: 'http://169.254.169.254/latest', name: 'meta' },
      { kind: 's3', url: s3.url, region: REGION, bucket: '../x', secret: KEY },
      { kind: 's3', url: s3.url, region: REGION, bucket: 'abc', prefix: 'a/../b', secret: KEY },
      { kind: 's3', url: s3.url, region: REGION, bucket: 'abc' },
      { kind: 'webhook', url: receiver.url, header: 'x-token' },
      { kind: 'file' },
      { kind: 'syslog' },
    ];
    for (const sink of hostile.slice(1))
      expect((await organisation.ask('POST', '/owner/audit-sinks', { name: 'other', ...sink })).status).toBe(400);
    const meta = await organisation.ask('POST', '/owner/audit-sinks', hostile[0]);
    if (meta.status === 201)
      expect((await organisation.ask('POST', `/owner/audit-sinks/${meta.body.id}/test`, {})).body.ok).toBe(false);
    expect((await organisation.ask('DELETE', `/owner/audit-sinks/${id}`)).status).toBe(200);
    expect((await organisation.ask('DELETE', `/owner/audit-sinks/${id}`)).status).toBe(404);
    const { text, body } = await organisation.ask('GET', '/owner/audit?limit=200');
    const reasons = new Set(body.rows.map(({ reason }: { reason: string }) => reason));
    for (const reason of ['audit_sink_created', 'audit_sink_changed', 'audit_sink_removed'])
      expect(reasons).toContain(reason);
    expect(text + JSON.stringify(await sinks())).not.toContain(secret);
  });
});

type LogRecord = {
  timeUnixNano: string;
  attributes: { key: string; value: unknown }[];
  body: { kvlistValue: { values: { key: string; value: unknown }[] } };
};
