/**
 * PostgreSQL URLs and their TLS parameters. Drivers and libpq interpret the same parameters differently: with `sslmode=require` one verifies the
 * certificate and the other does not. Here TLS always verifies the certificate, unless the URL has `no-verify`.
 */
import { accessSync, constants } from 'node:fs';

/** `no-verify` is not a mode of libpq, which calls it `require`. */
type Mode = 'disable' | 'no-verify' | 'verify-full';

const MODES: Readonly<Record<string, Mode>> = {
  disable: 'disable',
  'no-verify': 'no-verify',
  prefer: 'verify-full',
  require: 'verify-full',
  'verify-ca': 'verify-full',
  'verify-full': 'verify-full',
};
/** Parameters about TLS, including those of `pg` alone, which libpq rejects. */
const OF_TLS = ['sslmode', 'ssl', 'uselibpqcompat'];
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * Returns the URL with an `sslmode` that `pg` accepts: `disable`, `no-verify`, `verify-full`, or none for no TLS. Throws for an invalid URL; the
 * message contains nothing of the URL except file names.
 */
export function readPostgresUrl(text: string): string {
  const parameters = parametersOf(text);
  const mode = modeOf(parameters);
  // libpq's value for the system's root certificates, which for Node here are its default.
  if (parameters.get('sslrootcert') === 'system') parameters.delete('sslrootcert');
  for (const name of FILES) {
    const file = parameters.get(name);
    if (file !== undefined) requireReadable(name, file);
  }
  for (const name of OF_TLS) parameters.delete(name);
  if (mode !== undefined) parameters.set('sslmode', mode);
  return withParameters(text, parameters);
}

/** Whether the server's certificate is not verified. */
export const isUnverified = (url: string): boolean => parametersOf(url).get('sslmode') === 'no-verify';

/** Returns the URL for libpq's programs, and the password separately. `roots`: writes the trusted root certificates to a file and returns its path. */
export function libpqUrl(text: string, roots: () => string): { url: string; password: string } {
  const url = encodedAsPgReads(text);
  const parameters = parametersOf(url);
  if (parameters.get('sslmode') === 'no-verify') parameters.set('sslmode', 'require');
  else if (parameters.get('sslmode') === 'verify-full' && !parameters.has('sslrootcert'))
    parameters.set('sslrootcert', roots());
  const without = new URL(url);
  // In URLs of sockets (`postgres:///broker?host=/run/postgresql`) the password is a parameter, which `pg` and libpq prefer.
  const password = parameters.get('password') ?? decodeURIComponent(without.password);
  parameters.delete('password');
  without.password = '';
  return { url: withParameters(without.href, parameters), password };
}

/** If a `%` does not begin an escape, `pg` (pg-connection-string) treats the whole URL as not encoded, and encodes it; libpq rejects such a URL. */
const encodedAsPgReads = (url: string): string =>
  / |%[^a-f0-9]|%[a-f0-9][^a-f0-9]/i.test(url) ? encodeURI(url).replace(/%25(\d\d)/g, '%$1') : url;

function modeOf(parameters: ReadonlyMap<string, string>): Mode | undefined {
  const [asked, ssl] = [parameters.get('sslmode'), parameters.get('ssl')];
  if (asked !== undefined && !Object.hasOwn(MODES, asked))
    throw new Error(`its sslmode has to be one of ${Object.keys(MODES).join(', ')}`);
  const isLoose = parameters.get('uselibpqcompat') === 'true' && !parameters.has('sslrootcert');
  if (isLoose && (asked === 'require' || asked === 'prefer')) return 'no-verify';
  if (asked !== undefined) return MODES[asked];
  if (ssl !== undefined) return ssl === 'true' || ssl === '1' ? 'verify-full' : 'disable';
  return FILES.some((name) => parameters.has(name)) ? 'verify-full' : undefined;
}

function requireReadable(name: string, file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new Error(`the file of its ${name}, ${file}, cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function parametersOf(text: string): Map<string, string> {
  const url = URL.parse(text);
  if (url === null) throw new Error('is not an address; write postgres://user@host:5432/database');
  return new Map(url.searchParams);
}

/** Uses `%20` for a space: libpq does not decode `+`, which means a space only in forms. */
function withParameters(text: string, parameters: ReadonlyMap<string, string>): string {
  const query = [...parameters].map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
  return text.replace(/[?#].*$/s, '') + (query === '' ? '' : `?${query}`);
}
