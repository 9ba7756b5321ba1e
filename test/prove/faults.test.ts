/**
 * The dependencies of brokers are stopped, paused, full or read-only while brokers work. `npm run prove` makes the faults that need a server or a
 * mount of their own; PROVE_PART names them.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { type Postgres, startPostgres } from '../../bench/postgres.ts';
import { failingSync } from '../world/failing-sync.ts';
import { makeRandom } from '../world/random.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, STORES, type StoreKind } from '../world/stores.ts';
import { fill, ownExt4, ownFileSystem } from './file-systems.ts';
import { type Breaking, breakWork } from './inject-fault.ts';
import { startInvariants } from './invariants.ts';
import { Ledger } from './ledger.ts';
import { isRoot, NEEDS_ROOT, PARTS } from './parts.ts';
import { calls } from './scenarios/calls.ts';
import { pause, type Scene, setScene } from './scene.ts';

const SEED = Number(process.env.PROVE_SEED ?? Math.floor(Math.random() * 2 ** 32));
const CHOSEN = process.env.PROVE_PART?.split(',') ?? ['read-only'];

type Fault = {
  store: StoreKind;
  lastsMs: number;
  isTold: boolean;
  /** Whether it can be repaired only while no broker runs. */
  stopsFirst?: boolean;
  /** Returns the broker's environment, and the function that makes the dependency fail. */
  make(): Promise<{ environment: Record<string, string>; breaking: Breaking }>;
};

/** Starts a separate PostgreSQL server. */
async function ownServer(
  options: Parameters<typeof startPostgres>[0] = {},
): Promise<{ server: Postgres; url: string }> {
  const server = await startPostgres(options);
  if (!server) throw new Error('PostgreSQL is not installed here.');
  afterFile(() => server.stop());
  return { server, url: await server.createDatabase('broker') };
}

async function run(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const END_OTHERS = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
  and pid <> pg_backend_pid()`;

/** Returns a process and its child processes. */
function family(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return (
          readFileSync(`/proc/${name}/stat`, 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ')[1] === String(pid)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
  return [pid, ...children];
}

/** Kills all processes of the server, as a power failure would, except that the kernel still writes its page cache. */
async function killAll(server: Postgres): Promise<void> {
  const all = family(server.pid);
  const gone = server.halt('SIGKILL');
  for (const pid of all.slice(1))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process ended with the server.
    }
  await gone;
}

const FAULTS: Record<string, Fault> = {
  'read-only': {
    store: 'postgres',
    lastsMs: 2_000,
    isTold: true,
    make: async () => {
      const url = await newDatabase();
      const name = new URL(url).pathname.slice(1);
      return {
        environment: { DATABASE_URL: url },
        // As after a failover to a standby: new connections get a read-only server.
        breaking: async () => {
          await run(url, `alter database "${name}" set default_transaction_read_only = on`, END_OTHERS);
          // Connections that were opened meanwhile stay read-only for as long as they live.
          return () =>
            run(
              url,
              'set default_transaction_read_only = off',
              `alter database "${name}" reset default_transaction_read_only`,
            );
        },
      };
    },
  },
  stopped: {
    store: 'postgres',
    lastsMs: 5_000,
    isTold: true,
    make: async () => {
      const { server, url } = await ownServer();
      const breaking = async () => {
        await server.halt('SIGINT');
        return () => server.resume();
      };
      return { environment: { DATABASE_URL: url }, breaking };
    },
  },
  killed: {
    store: 'postgres',
    lastsMs: 3_000,
    isTold: false,
    make: async () => {
      const { server, url } = await ownServer();
      const breaking = async () => {
        await killAll(server);
        await pause(500);
        return () => server.resume();
      };
      return { environment: { DATABASE_URL: url }, breaking };
    },
  },
  promoted: {
    store: 'postgres',
    lastsMs: 3_000,
    isTold: true,
    make: async () => {
      const { server, url } = await ownServer();
      const standby = await server.addStandby();
      afterFile(() => standby.stop());
      // Simulates a host name or an address that moves to another server.
      const wire = await startFaultProxy(url);
      const breaking = async () => {
        await killAll(server);
        await wire.cut();
        return async () => {
          await standby.promote();
          await wire.repair(standby.urlOf('broker'));
        };
      };
      return { environment: { DATABASE_URL: wire.url }, breaking };
    },
  },
  paused: {
    store: 'postgres',
    lastsMs: 8_000,
    isTold: true,
    make: async () => {
      const { server, url } = await ownServer();
      const breaking = async () => {
        const all = family(server.pid);
        for (const pid of all) process.kill(pid, 'SIGSTOP');
        return async () => {
          for (const pid of all) process.kill(pid, 'SIGCONT');
        };
      };
      return { environment: { DATABASE_URL: url }, breaking };
    },
  },
  connections: {
    store: 'postgres',
    lastsMs: 4_000,
    isTold: false,
    make: async () => {
      const { url } = await ownServer({ settings: ['--max_connections=40', '--superuser_reserved_connections=0'] });
      const breaking = async () => {
        const taken: pg.Client[] = [];
        await run(url, END_OTHERS);
        for (let full = 0; full < 20; ) {
          const client = new pg.Client({ connectionString: url });
          client.on('error', () => {});
          await client.connect().then(
            () => taken.push(client),
            () => full++,
          );
        }
        return async () => {
          for (const client of taken) await client.end();
        };
      };
      return { environment: { DATABASE_URL: url }, breaking };
    },
  },
  'postgres-full': {
    store: 'postgres',
    lastsMs: 4_000,
    isTold: true,
    make: async () => {
      const parent = ownFileSystem('180m');
      const settings = ['--max_wal_size=32MB', '--min_wal_size=32MB'];
      const { server, url } = await ownServer({ parent, settings });
      const breaking = async () => {
        const file = fill(parent);
        return async () => {
          rmSync(file);
          // PostgreSQL stops when it cannot write WAL; an operator would start it again.
          if (!family(server.pid)[1]) await server.resume();
        };
      };
      return { environment: { DATABASE_URL: url }, breaking };
    },
  },
  'disk-full': {
    store: 'sqlite',
    lastsMs: 4_000,
    isTold: true,
    make: async () => {
      const folder = ownFileSystem('48m');
      const data = join(folder, 'data');
      mkdirSync(data, { mode: 0o700 });
      const breaking = async () => {
        const file = fill(folder);
        return async () => rmSync(file);
      };
      return { environment: { AGENT_BROKER_DATA: data }, breaking };
    },
  },
  'inodes-full': {
    store: 'sqlite',
    lastsMs: 3_000,
    isTold: false,
    make: async () => {
      const folder = ownFileSystem('64m', '300');
      const data = join(folder, 'data');
      mkdirSync(data, { mode: 0o700 });
      const ballast = join(folder, 'ballast');
      const breaking = async () => {
        mkdirSync(ballast);
        for (let at = 0; at < 300; at++)
          try {
            writeFileSync(join(ballast, `${at}`), '');
          } catch {
            break;
          }
        return async () => rmSync(ballast, { recursive: true });
      };
      return { environment: { AGENT_BROKER_DATA: data }, breaking };
    },
  },
  'folder-read-only': {
    store: 'sqlite',
    lastsMs: 3_000,
    isTold: true,
    stopsFirst: true,
    make: async () => {
      const disk = ownExt4();
      const data = join(disk.folder, 'data');
      mkdirSync(data, { mode: 0o700 });
      const breaking = async () => {
        disk.turnReadOnly();
        return async () => disk.repair();
      };
      return { environment: { AGENT_BROKER_DATA: data }, breaking };
    },
  },
  'slow-disk': {
    store: 'sqlite',
    lastsMs: 6_000,
    isTold: false,
    make: async () => {
      const disk = failingSync('slow');
      if (!disk) throw new Error('a C compiler on Linux is needed: cc');
      const breaking = async () => {
        disk.fail();
        return async () => disk.repair();
      };
      return { environment: disk.environment, breaking };
    },
  },
};

const own = CHOSEN.filter((part) => STORES.includes(FAULTS[part]?.store ?? 'sqlite'));

// No retry in CI: these tests look for rare failures.
describe.runIf(own.length > 0)(`faults (PROVE_SEED=${SEED})`, { retry: 0 }, () => {
  test.for(own)(
    'ST-02 %s: calls fail with readable errors, succeed again without intervention, and each has exactly one audit row',
    { timeout: 180_000 },
    async (part, context) => {
      const fault = FAULTS[part];
      expect(fault, part).toBeDefined();
      const { store, make, lastsMs, isTold, stopsFirst = false } = fault!;
      if (!isRoot && PARTS.some(({ name, needsRoot }) => name === part && needsRoot)) return context.skip(NEEDS_ROOT);
      const ledger = new Ledger({ part, store, seed: SEED });
      await ledger.keep(async () => {
        const { environment, breaking } = await make();
        const prepare = (scene: Scene) => calls(scene, () => invariants);
        const set = await setScene(store, prepare, { random: makeRandom(SEED), ledger }, environment);
        // After the repair the file system has only what was synced.
        const invariants = startInvariants(set.scene, { losesReads: stopsFirst });
        await breakWork(set, invariants, { breaking, lastsMs, isTold, stopsFirst });
      });
    },
  );
});
