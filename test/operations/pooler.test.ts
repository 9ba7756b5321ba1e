/** A real PgBouncer between a broker and PostgreSQL. */
import { spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { onlyWith } from '../sidecar/tls-world.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

/** Starts PgBouncer and returns its URL for the database. */
async function poolerBefore(database: string, mode: 'session' | 'transaction'): Promise<string> {
  const { hostname, port, username, password } = new URL(database);
  const [folder, listening] = [newFolder(), await freePort()];
  const behind = `host=${hostname} port=${port || 5432} user=${username} ${password && `password=${password}`}`;
  writeFileSync(join(folder, 'users'), `"${username}" "${password}"\n`);
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]\n* = ${behind}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${listening}\nunix_socket_dir =\n` +
      `auth_type = any\nauth_file = ${join(folder, 'users')}\npool_mode = ${mode}\nmax_client_conn = 100\n`,
  );
  chmodSync(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  const child = spawn('pgbouncer', ['-q', join(folder, 'pgbouncer.ini')], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: 'ignore',
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  afterFile(() => {
    child.kill('SIGKILL');
    return ended;
  });
  await expect.poll(() => accepts(listening)).toBe(true);
  const url = new URL(database);
  url.port = String(listening);
  return url.href;
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });

const starting = (url: string) =>
  serve(readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder(), DATABASE_URL: url }), {});

describe.runIf(STORES.includes('postgres'))(`a pooler before PostgreSQL${postgresNote}`, () => {
  const real = onlyWith('pgbouncer', '--version');
  let database: string;
  beforeAll(async () => {
    database = await newDatabase();
  });

  real('with another server connection per transaction is rejected before anything is created', async () => {
    const url = await poolerBefore(database, 'transaction');
    await expect(starting(url)).rejects.toThrow(/^DATABASE_URL leads to a pooler .* pool_mode = session/);
  });

  real('with a server connection per client works for a broker, from an empty database on', async () => {
    const running = await starting(await poolerBefore(database, 'session'));
    expect((await fetch(`${running.baseUrl}/health`)).status).toBe(200);
    await running.stop();
  });
});
