/** Runs PostgreSQL's own programs on this machine, which back up and restore a database. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import type { PostgresPrograms } from '../broker/store/postgres/backup.ts';
import { libpqUrl } from '../broker/store/postgres/url.ts';

type Ended = { code: number | null; stdout: string; stderr: string };

export const postgresPrograms: PostgresPrograms = {
  require: async (program, major) => {
    const ended = await start(program, {}, ['--version']).catch(() => undefined);
    const found = Number(/\(PostgreSQL\) (\d+)/.exec(ended?.stdout ?? '')?.[1] ?? 0);
    if (found >= major) return;
    throw new Error(
      `${found === 0 ? `There is no ${program} here` : `The ${program} here is of PostgreSQL ${found}`}, and the server is PostgreSQL ${major}. ` +
        `Install the client programs of PostgreSQL ${major} or later (Debian: postgresql-client-${major}), or use the backups of the database's operator.`,
    );
  },
  run: async (program, databaseUrl, args) => {
    let folder: string | undefined;
    const roots = () => {
      folder = mkdtempSync(join(tmpdir(), 'agent-broker-roots-'));
      const file = join(folder, 'roots.pem');
      writeFileSync(file, getCACertificates('default').join('\n'));
      return file;
    };
    try {
      // Command lines can be read by every user of the machine, so the password is never in one.
      const database = databaseUrl === undefined ? undefined : libpqUrl(databaseUrl, roots);
      const env: Record<string, string> = database ? { PGPASSWORD: database.password } : {};
      const { code, stdout, stderr } = await start(program, env, [
        ...(database ? [`--dbname=${database.url}`] : []),
        ...args,
      ]);
      if (code !== 0) throw new Error(`${program} failed: ${stderr.trim().split('\n').slice(0, 5).join(' ')}`);
      return stdout;
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    }
  },
};

function start(program: string, more: Record<string, string>, args: readonly string[]): Promise<Ended> {
  // The rest of this process's environment is left out: it may contain the master key.
  const env = { ...pick((name) => OWN.has(name) || /^PG[A-Z]+$/.test(name)), ...more };
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < 10_000) stderr += text;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

const OWN = new Set(['PATH', 'HOME', 'LANG', 'SystemRoot']);

/** Selects variables. `PG…`: libpq's own settings, such as PGSSLROOTCERT. */
const pick = (isWanted: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && isWanted(name) ? [[name, value]] : [],
    ),
  );
