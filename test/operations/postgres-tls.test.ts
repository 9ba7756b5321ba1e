/** A PostgreSQL server with a certificate of a private certificate authority. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Postgres, startPostgres, unprivilegedAccount } from '../../bench/postgres.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { certificateFor } from '../egress/certificate.ts';
import { BIN } from '../world/checkout.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';

const run = promisify(execFile);

describe.runIf(STORES.includes('postgres'))(`PostgreSQL with TLS${postgresNote}`, () => {
  const { cert, key } = certificateFor('127.0.0.1');
  const [folder, data] = [newFolder(), newFolder()];
  const [ca, keyFile] = [join(folder, 'ca.pem'), join(folder, 'server.key')];
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    writeFileSync(ca, cert);
    writeFileSync(keyFile, key, { mode: 0o600 });
    chmodSync(folder, 0o755);
    if (process.getuid?.() === 0) chownSync(keyFile, unprivilegedAccount().uid, unprivilegedAccount().gid);
    const settings = ['--ssl=on', `--ssl_cert_file=${ca}`, `--ssl_key_file=${keyFile}`];
    const started = await startPostgres({ settings });
    if (!started) throw new Error('PostgreSQL (initdb, postgres) is not installed here.');
    server = started;
    url = await server.createDatabase('broker');
  }, 180_000);
  afterAll(() => server?.stop());

  const environment = (query: string) => ({
    ...{ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: data },
    DATABASE_URL: url + query,
  });
  const starting = (query: string) => serve(readConfig(environment(query)), {});
  const trusting = () => `?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`;

  test('every connection of a broker is encrypted', async () => {
    const running = await starting(trusting());
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(
      `select ssl, count(*)::int from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'agent-broker%' group by ssl`,
    );
    expect(rows).toEqual([{ ssl: true, count: expect.any(Number) }]);
    await client.end();
    await running.stop();
  });

  test.each(['?sslmode=require', '?ssl=true'])(
    '%s without its authority is rejected with a readable error',
    async (query) => {
      await expect(starting(query)).rejects.toThrow(
        /^PostgreSQL at 127\.0\.0\.1:\d+ \(DATABASE_URL\) has a certificate that is not trusted \([A-Z_]+\)\. Name its certificate authority .*sslrootcert=/,
      );
    },
  );

  test('a host name that is not in the certificate is rejected', async () => {
    const other = readConfig({
      ...environment(''),
      DATABASE_URL: `${url.replace('127.0.0.1', 'localhost')}${trusting()}`,
    });
    await expect(serve(other, {})).rejects.toThrow(/ERR_TLS_CERT_ALTNAME_INVALID.*another host name/);
  });

  test('a start without certificate verification warns', async () => {
    const env = { PATH: process.env.PATH, HOME: newFolder(), ...environment('?sslmode=no-verify'), LOG_LEVEL: 'warn' };
    const child = spawn(process.execPath, [BIN, 'serve', '--no-sandbox'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
    await expect.poll(() => said).toMatch(/Agent Broker is running/);
    expect(said).toMatch(
      /"security":true,"msg":"DATABASE_URL says sslmode=no-verify: the certificate of PostgreSQL is not/,
    );
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    await ended;
  });

  test.each([
    ['with its authority', trusting, {}],
    ['with an authority that Node is told of', () => '?sslmode=verify-full', { NODE_EXTRA_CA_CERTS: ca }],
    ['without looking at it', () => '?sslmode=no-verify', {}],
  ])('a backup is made %s', async (_, query, more) => {
    const running = await starting(trusting());
    await running.stop();
    const file = join(newFolder(), 'backup');
    const env = { PATH: process.env.PATH, HOME: newFolder(), ...environment(query()), ...more };
    const { stdout, stderr } = await run(process.execPath, [BIN, 'backup', file], { env });
    expect(stdout + stderr).not.toMatch(/Warning/);
    expect(existsSync(file)).toBe(true);
  });
});
