/**
 * Addresses of PostgreSQL, and what they say of TLS. Drivers and libpq read the same words in different ways: of `sslmode=require` one verifies the
 * certificate and the other one does not. Here TLS is verified wherever it is asked for, unless the address says `no-verify`.
 */
import { accessSync, constants } from 'node:fs';

/** `no-verify` is none of libpq's: it calls that `require`. */
type Mode = 'disable' | 'no-verify' | 'verify-full';

const MODES: Readonly<Record<string, Mode>> = {
  disable: 'disable',
  'no-verify': 'no-verify',
  prefer: 'verify-full',
  require: 'verify-full',
  'verify-ca': 'verify-full',
  'verify-full': 'verify-full',
};
/** Of TLS, and those that are `pg`'s alone, which libpq refuses. */
const OF_TLS = ['sslmode', 'ssl', 'uselibpqcompat'];
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * The address with `sslmode` as `pg` takes it: `disable`, `no-verify`, `verify-full`, or none for no TLS. Throws, in words that hold nothing of the
 * address but names of files, for one that cannot be used.
 */
export function readPostgresUrl(text: string): string {
  const parameters = parametersOf(text);
  const mode = modeOf(parameters);
  // As libpq says it for the roots of the system, which are those of Node here.
  if (parameters.get('sslrootcert') === 'system') parameters.delete('sslrootcert');
  for (const name of FILES) {
    const file = parameters.get(name);
    if (file !== undefined) requireReadable(name, file);
  }
  for (const name of OF_TLS) parameters.delete(name);
  if (mode !== undefined) parameters.set('sslmode', mode);
  return withParameters(text, parameters);
}

/** Whether the certificate of a server is not looked at. */
export const isUnverified = (url: string): boolean => parametersOf(url).get('sslmode') === 'no-verify';

/** The same for libpq's programs, without the password. `roots`: writes the roots that are trusted here into a file, and answers its path. */
export function libpqUrl(text: string, roots: () => string): { url: string; password: string } {
  const url = encodedAsPgReads(text);
  const parameters = parametersOf(url);
  if (parameters.get('sslmode') === 'no-verify') parameters.set('sslmode', 'require');
  else if (parameters.get('sslmode') === 'verify-full' && !parameters.has('sslrootcert'))
    parameters.set('sslrootcert', roots());
  const without = new URL(url);
  // Addresses of sockets (`postgres:///broker?host=/run/postgresql`) have it among the parameters, which come first for `pg` and libpq.
  const password = parameters.get('password') ?? decodeURIComponent(without.password);
  parameters.delete('password');
  without.password = '';
  return { url: withParameters(without.href, parameters), password };
}

/** With a `%` that begins no escape `pg` (pg-connection-string) takes the whole address as one that was not encoded; libpq refuses that. */
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

/** `+` stands for a blank in forms alone: libpq reads it as it is. */
function withParameters(text: string, parameters: ReadonlyMap<string, string>): string {
  const query = [...parameters].map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
  return text.replace(/[?#].*$/s, '') + (query === '' ? '' : `?${query}`);
}
