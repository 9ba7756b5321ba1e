/** A temporary PostgreSQL cluster, when PostgreSQL is installed, so that no database of the operator is used. */

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { present } from '../broker/runtime/present.ts';
import { freePort } from './free-port.ts';
import { stopper } from './process.ts';

export type Postgres = {
  version: string;
  pid: number;
  urlOf(database: string): string;
  /** Creates an empty database and returns its URL. */
  createDatabase(name: string): Promise<string>;
  /** Ends the server by a signal, and keeps its data. */
  halt(signal: NodeJS.Signals): Promise<void>;
  /** Starts the server again, on the same port and data. */
  resume(): Promise<void>;
  /** Starts a standby of this server (streaming replication). Unless it is `late`, every later commit here waits until the standby has it. */
  addStandby(how?: { late: boolean }): Promise<Postgres>;
  /** Promotes a standby, so that it accepts writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
};

/** `parent`: the parent of the server's folder; `settings`: further server flags; `standbyOf`: the primary of a standby. */
type Options = { parent?: string; settings?: readonly string[]; standbyOf?: { port: number; password: string } };

/** The account that runs the server; empty for the present user. */
type Account = { uid: number; gid: number } | Record<string, never>;

/**
 * Starts PostgreSQL on loopback with its default settings, including durability, and a random password for this run;
 * returns undefined when it is not installed. Root cannot run PostgreSQL, so a bench of root runs it as `postgres` or `nobody`.
 */
export async function startPostgres({
  parent = tmpdir(),
  settings: more = [],
  standbyOf,
}: Options = {}): Promise<Postgres | undefined> {
  const bin = binFolder();
  if (bin === undefined) return undefined;
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : {};
  const folder = mkdtempSync(join(parent, 'agent-broker-bench-postgres-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  let end = async () => {};
  const stop = async () => {
    await end();
    remove();
  };
  try {
    const password = standbyOf?.password ?? randomBytes(24).toString('hex');
    if (standbyOf) copyServer(bin, folder, standbyOf, account);
    else initialise(bin, folder, password, account);
    const port = await freePort();
    const settings = ['--listen_addresses=127.0.0.1', `--port=${port}`, '--unix_socket_directories=', ...more];
    const flags = ['-D', join(folder, 'data'), ...settings];
    const urlOf = (database: string) => `postgres://bench:${password}@127.0.0.1:${port}/${database}`;
    const run = async () => {
      const started = spawn(join(bin, 'postgres'), flags, { ...account, cwd: folder, stdio: 'ignore' });
      // SIGINT is PostgreSQL's fast shutdown; on SIGTERM it would wait for its clients to disconnect.
      end = stopper(started, 'SIGINT');
      const version = await firstAnswer(() => ask(urlOf('postgres'), 'show server_version'));
      return { started, version };
    };
    let { started: child, version } = await run();
    return {
      // Packagers append their own text to the version number.
      version: version[0]?.server_version?.split(' ')[0] ?? 'unknown',
      get pid() {
        return present(child.pid, 'process');
      },
      urlOf,
      stop,
      halt: async (signal) => {
        const gone = once(child, 'exit');
        child.kill(signal);
        await gone;
      },
      resume: async () => {
        ({ started: child, version } = await run());
      },
      addStandby: async ({ late } = { late: false }) => {
        const following = { parent, settings: more, standbyOf: { port, password } };
        const standby = present(await startPostgres(following), 'standby');
        if (late) return standby;
        await ask(urlOf('postgres'), "alter system set synchronous_standby_names = '*'");
        await ask(urlOf('postgres'), 'select pg_reload_conf()');
        return standby;
      },
      promote: async () => {
        await ask(urlOf('postgres'), 'select pg_promote()');
      },
      async createDatabase(name) {
        await ask(urlOf('postgres'), `create database ${pg.escapeIdentifier(name)}`);
        return urlOf(name);
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function initialise(bin: string, folder: string, password: string, account: Account): void {
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if ('uid' in account) for (const path of [folder, passwordFile]) chownSync(path, account.uid, account.gid);
  const who = ['--username=bench', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const flags = [`--pgdata=${join(folder, 'data')}`, ...who, '--encoding=UTF8', '--no-locale'];
  execFileSync(join(bin, 'initdb'), flags, { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(passwordFile);
}

/** Copies the data of a running server with pg_basebackup, for a standby. */
function copyServer(
  bin: string,
  folder: string,
  { port, password }: { port: number; password: string },
  account: Account,
): void {
  if ('uid' in account) chownSync(folder, account.uid, account.gid);
  const from = ['--host=127.0.0.1', `--port=${port}`, '--username=bench', '--checkpoint=fast'];
  const flags = [`--pgdata=${join(folder, 'data')}`, ...from, '--write-recovery-conf', '--no-password'];
  const env = { ...process.env, PGPASSWORD: password };
  execFileSync(join(bin, 'pg_basebackup'), flags, {
    ...account,
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function ask(connectionString: string, sql: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Repeats the question until it succeeds, for up to 20 s. */
async function firstAnswer<T>(question: () => Promise<T>): Promise<T> {
  for (let tries = 200; ; tries--) {
    try {
      return await question();
    } catch (error) {
      if (tries === 0) throw error;
      await wait(100);
    }
  }
}

const TOOLS = ['initdb', 'postgres', 'pg_basebackup'];

/** Returns the folder of the PostgreSQL binaries: on the PATH, or Debian's folder of the newest version; undefined when there is none. */
function binFolder(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...versions.map((one) => join(debian, one, 'bin'))];
  return folders.find((folder) => TOOLS.every((tool) => existsSync(join(folder, tool))));
}

/** Returns the account that runs PostgreSQL when the bench runs as root. */
export function unprivilegedAccount(): { uid: number; gid: number } {
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // This account does not exist here: try the next one.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is no account postgres or nobody to run it as.');
}
