import { isCertificateCode } from '../egress/unreachable.ts';
import type { Config } from '../environment/config.ts';
import { isStoreOutage } from '../store/store-fault.ts';

/** SQLITE_FULL, as a primary code. */
const SQLITE_FULL = 13;
/** SQLITE_IOERR_SHMSIZE: the index of the write-ahead log, a file beside the store, could not be extended. */
const SQLITE_IOERR_SHMSIZE = 4_874;
/** PostgreSQL class 28 (authorization), 3D000 (no such database), 42501 (no right to connect), 55000 (the database accepts no connections). */
const REFUSED = /^(28[0-9A-Z]{3}|3D000|42501|55000)$/;

const toTrust = (code: string | undefined): string =>
  code === 'ERR_TLS_CERT_ALTNAME_INVALID'
    ? 'The certificate is for another host name: use a name that it contains.'
    : 'Name its certificate authority in the address: sslmode=verify-full&sslrootcert=/path/to/ca.pem.';

/**
 * Returns an error that explains why a broker could not start; the original error when the cause is not recognised. `target`: the folder that was
 * written to, if it is not the data folder.
 */
export function startFault(error: unknown, { dataFolder, databaseUrl }: Config, target: string = dataFolder): unknown {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code, errcode, message } = each as Error & { code?: string; errcode?: number };
    const full =
      code === 'ENOSPC' || (errcode !== undefined && (errcode & 0xff) === SQLITE_FULL)
        ? target
        : errcode === SQLITE_IOERR_SHMSIZE && dataFolder;
    if (full) return new Error(`The disk of ${full} is full. Make room there, then start again.`, { cause: error });
    if (databaseUrl === undefined) continue;
    const url = new URL(databaseUrl.reveal());
    const server = `PostgreSQL at ${url.hostname}:${url.port || 5432} (DATABASE_URL)`;
    // A host name with several addresses gives one aggregate error without a message.
    const words = message || code;
    if (isCertificateCode(code ?? ''))
      return new Error(`${server} has a certificate that is not trusted (${code}). ${toTrust(code)}`, {
        cause: error,
      });
    if (REFUSED.test(code ?? '')) return new Error(`${server} refuses the broker: ${words}.`, { cause: error });
    if (isStoreOutage(each)) return new Error(`${server} does not answer: ${words}.`, { cause: error });
  }
  return error;
}
