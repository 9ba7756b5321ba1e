/** Seals and opens stored secrets under the current master keys. */
import { setImmediate } from 'node:timers/promises';
import type { MasterKeys } from './crypto/master-key.ts';
import { open, rewrap, SealError, seal, sealedWith } from './crypto/seal.ts';
import { present } from './runtime/present.ts';
import { listSealed, replaceSealed, SEALED, type SealedColumn } from './store/sealed.ts';
import type { Store } from './store/store.ts';

/** `column`: required for tables with several sealed columns; defaults to the first. */
type Place = {
  table: SealedColumn['table'];
  column?: SealedColumn['column'];
  organisationId: string;
  rowId: string;
};

export type Vault = {
  seal(place: Place, plaintext: Buffer | string): Buffer;
  /** Throws SealError when the value was altered, moved from another row, or sealed with a key that is not available. */
  open(place: Place, sealed: Uint8Array): Buffer;
  masterKeys(): MasterKeys;
  /** Seals with other keys from now on. `keys` must list the old ones as previous until `rewrapAll` is done. */
  useMasterKeys(keys: MasterKeys): void;
};

const columnOf = ({ table, column }: Place): SealedColumn['column'] =>
  column ??
  present(
    SEALED.find((sealed) => sealed.table === table),
    'sealed column',
  ).column;

const aad = (place: Place) => ({
  table: place.table,
  column: columnOf(place),
  rowId: place.rowId,
  organisationId: place.organisationId,
});

export function makeVault(initial: MasterKeys): Vault {
  let keys = initial;
  return {
    seal: (place, plaintext) => seal(keys, aad(place), plaintext),
    open: (place, sealed) => open(keys, aad(place), Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)),
    masterKeys: () => keys,
    useMasterKeys: (next) => {
      keys = next;
    },
  };
}

const BATCH = 200;
/** Two passes are enough, unless a replica still seals with the older key. */
const MAX_PASSES = 10;

/** `unreadable`: values that no key opens, as `table row`. They stay unchanged. */
export type Rewrapped = { wrapped: number; unreadable: string[] };

/**
 * Wraps every stored data key with the current master key, until a whole pass finds nothing to do: a value that was sealed just before the key
 * changed may be stored after its row was passed. Works online and may be interrupted and repeated: a row is replaced only if it is still as it was
 * read.
 */
export async function rewrapAll(store: Store, vault: Vault): Promise<Rewrapped> {
  let wrapped = 0;
  let pass: Rewrapped;
  let passes = 0;
  do {
    pass = await rewrapOnce(store, vault);
    wrapped += pass.wrapped;
  } while (pass.wrapped > 0 && ++passes < MAX_PASSES);
  return { wrapped, unreadable: pass.unreadable };
}

async function rewrapOnce(store: Store, vault: Vault): Promise<Rewrapped> {
  const keys = vault.masterKeys();
  const done: Rewrapped = { wrapped: 0, unreadable: [] };
  for (const column of SEALED) {
    let after = '';
    for (;;) {
      const rows = await listSealed(store.db, column, after, BATCH);
      for (const row of rows) {
        const place = {
          table: column.table,
          column: column.column,
          organisationId: row.organisationId,
          rowId: row.rowId,
        };
        try {
          if (sealedWith(row.sealed) === keys.current.id) continue;
          await replaceSealed(store.db, column, row, rewrap(keys, aad(place), row.sealed));
          done.wrapped++;
          // SQLite calls complete synchronously: without this pause no request would be served until all is done.
          await setImmediate();
        } catch (error) {
          // One value that was tampered with must not keep all others under the old key.
          if (!(error instanceof SealError)) throw error;
          done.unreadable.push(`${column.table} ${row.rowId}`);
        }
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < BATCH) break;
      after = last.rowId;
    }
  }
  return done;
}
