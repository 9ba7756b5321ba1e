/** The keys that sign checkpoints of receipt logs: the same key for all logs, under the name of each (C2SP signed-note). */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { authenticatorOf, isOwnKey } from '../key-authenticity.ts';
import { present } from '../runtime/present.ts';
import { listLogKeys, putLogKey, retireLogKeys } from '../store/log-keys.ts';
import { WHOLE_BROKER } from '../store/sealed.ts';
import type { LogKeyTable } from '../store/tables/receipt-log.ts';
import type { Vault } from '../vault.ts';
import { generateNoteKey, logKey, type NoteKey } from './note.ts';

type HasKeys = Pick<Broker, 'store' | 'vault' | 'clock'>;

/** A key that can sign. */
export type LogSigner = { id: string; publicKey: Buffer; privateKey: KeyObject };

const placeOf = (id: string) => ({ table: 'log_keys', organisationId: WHOLE_BROKER, rowId: id }) as const;

/** Returns the name for a new log of an organisation: `<host>/orgs/<uuid>`, below which it is served (C2SP tlog-checkpoint, origin). */
export const newOrigin = (baseUrl: string, organisationId: string): string =>
  `${new URL(baseUrl).host}/orgs/${organisationId}`;

const publishedAs = (id: string) => ({ table: 'log_keys', id, use: 'log' }) as const;

/** Lists the stored keys that this broker created, newest first. */
export async function ownLogKeys({ store, vault }: Pick<Broker, 'store' | 'vault'>): Promise<LogKeyTable[]> {
  const own: LogKeyTable[] = [];
  for (const row of await listLogKeys(store.db)) {
    const isIts = sha256Hex(Buffer.from(row.public_key, 'base64')) === row.id;
    const hasPrivate = () => row.private_key !== null && privateHalf(vault, row) !== undefined;
    if (isIts && (await isOwnKey({ store, vault }, publishedAs(row.id), row.authenticator, hasPrivate))) own.push(row);
  }
  return own;
}

/** Lists the keys for the log of this name, newest first. */
export async function logKeysOf(broker: Pick<Broker, 'store' | 'vault'>, origin: string) {
  return (await ownLogKeys(broker)).map((row): NoteKey & { retiredAt: number | null } => ({
    ...logKey(origin, Buffer.from(row.public_key, 'base64')),
    retiredAt: row.retired_at,
  }));
}

/** Returns the current signing key; creates one where there is none (at first, and after a restore). Throws SealError when it was altered in the store. */
export async function logSigner({ store, vault, clock }: HasKeys): Promise<LogSigner> {
  const able = (await ownLogKeys({ store, vault })).find((key) => key.private_key !== null);
  const row = able ?? (await makeKey({ store, vault, clock }));
  return { id: row.id, publicKey: Buffer.from(row.public_key, 'base64'), privateKey: privateHalf(vault, row) };
}

/** Decrypts the private half. Throws SealError when it was altered in the store. */
function privateHalf(vault: Vault, { id, private_key }: LogKeyTable): KeyObject {
  const der = vault.open(placeOf(id), present(private_key, 'private half of the log key'));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

async function makeKey({ store, vault, clock }: HasKeys): Promise<LogKeyTable> {
  const { publicKey, privatePkcs8 } = generateNoteKey();
  const id = sha256Hex(publicKey);
  const row: LogKeyTable = {
    id,
    public_key: publicKey.toString('base64'),
    private_key: vault.seal(placeOf(id), privatePkcs8),
    created_at: clock(),
    retired_at: null,
    authenticator: authenticatorOf(vault, publishedAs(id)),
  };
  await putLogKey(store.db, row);
  return row;
}

/** Creates a key that signs from the next checkpoint on, and destroys the private halves of earlier keys. Returns its id. */
export async function rotateLogKey(broker: HasKeys): Promise<string> {
  const { id } = await makeKey(broker);
  await retireLogKeys(broker.store.db, id, broker.clock());
  return id;
}
