/** Warnings at the start about settings that the broker accepts, and that lose or expose data, or invalidate what people hold. */

import type { Config } from '../environment/config.ts';
import type { Log } from '../log/log.ts';
import { findMeta, putMeta } from '../store/meta.ts';
import { settingsThatLoseCommits } from '../store/postgres/durability.ts';
import { otherEncoding } from '../store/postgres/encoding.ts';
import { isUnverified } from '../store/postgres/url.ts';
import type { Store } from '../store/store.ts';

/** Warns of an opened and migrated store that may lose commits, cannot store all characters, or is connected without verifying it. */
export async function warnOfDatabase(store: Store, config: Config, log: Log): Promise<void> {
  await warnOfLostCommits(store, log);
  await warnOfEncoding(store, log);
  warnOfUnverified(config, log);
}

const SERVED_AS = 'base_url';

/**
 * Warns when the store was last served with another BASE_URL: it was changed or lost, or two replicas differ. Without BASE_URL nothing is compared
 * or stored, unless the store was served with one: the default contains the port, which differs between trials.
 */
export async function warnOfOtherAddress({ db }: Store, config: Pick<Config, 'baseUrl'>, log: Log): Promise<void> {
  const last = await findMeta(db, SERVED_AS);
  const { baseUrl } = config;
  if (last !== undefined && last !== baseUrl)
    log.warn(
      `BASE_URL is ${baseUrl ?? 'not set'}, and this store was last served with ${last}. DIDs and new receipts contain the address, passkeys work only on the host that they were added on, and MCP clients and owners have to sign in again. All replicas need the same BASE_URL`,
    );
  if (baseUrl !== undefined && last !== baseUrl) await putMeta(db, SERVED_AS, baseUrl);
}

/** SQLite gets durable settings when it is opened; PostgreSQL's are up to the operator. */
async function warnOfLostCommits(store: Store, log: Log): Promise<void> {
  if (store.dialect !== 'postgres') return;
  for (const setting of await settingsThatLoseCommits(store.db))
    log.warn(
      `PostgreSQL runs with ${setting} = off: data of calls that were already answered may be lost when it crashes`,
    );
}

/** Warns of the encoding of a store that an earlier release created. */
async function warnOfEncoding(store: Store, log: Log): Promise<void> {
  const encoding = await otherEncoding(store);
  if (encoding !== undefined)
    log.warn(
      `the encoding of this PostgreSQL database is ${encoding}: characters that it lacks cannot be stored. Back up, and restore into a database with the encoding UTF8`,
    );
}

function warnOfUnverified({ databaseUrl, databaseReadUrl }: Config, log: Log): void {
  for (const [name, url] of Object.entries({ DATABASE_URL: databaseUrl, DATABASE_READ_URL: databaseReadUrl }))
    if (url !== undefined && isUnverified(url.reveal()))
      log.warn(
        { security: true },
        `${name} says sslmode=no-verify: the certificate of PostgreSQL is not verified, so an attacker on the network can read and change everything`,
      );
}
