/** Validators for the values of environment variables. */
import { isIP } from 'node:net';
import { z } from 'zod';

/** Parses a number in decimal digits to a value of `type`; `Number` would also accept `0x10`, `1e3` and blanks. `what`: the text after "must be". */
export const decimal = (what: string, type: z.ZodNumber) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, { error: `must be ${what}`, abort: true })
    .transform(Number)
    .pipe(type);

/** Whether a text is an origin. Identifiers are derived from the host only (did:web, rpId), so a path would result in addresses that are not served. */
export function isOrigin(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text) && `${new URL(text).origin}/` === new URL(text).href;
}

/** Whether a text is a name or an address, with or without a port. */
export function isHost(text: string): boolean {
  const url = URL.parse(`http://${text}`);
  return url !== null && /^[^\s/?#@\\]+$/.test(text) && url.href === `http://${url.host}/` && url.hostname !== '';
}

/** Whether Express accepts a text as a proxy: an address, a range in CIDR form, or one of its three names for private ranges. */
export function isAddressRange(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true;
  const [address = '', bits, more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** Hosts for which http is allowed: loopback only (RFC 8252 section 8.3). */
export const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Whether a text is an issuer (OpenID Connect Discovery section 3): https, without query or fragment; and without credentials, which would end up in a
 * log.
 */
export function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (/[?#\s]/.test(text) || username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
}

export const listed = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);

/** Variables that the clients (`mcp`, `token`, …) read and the server ignores. */
export const CLIENT_VARIABLES = [
  'AGENT_BROKER_URL',
  'AGENT_BROKER_AGENT_ID',
  'AGENT_BROKER_OWNER_ID',
  'AGENT_BROKER_CALLER',
  'AGENT_BROKER_CALLER_FILE',
  'AGENT_BROKER_PRIVATE_KEY',
  'AGENT_BROKER_TOKEN_FILE',
  'AGENT_BROKER_PROFILE',
  'AGENT_BROKER_OWNER_TOKEN',
  'AGENT_BROKER_PIPELINE',
];

/** Variables that `agent-broker run` sets for its command, which may be a broker. */
const OF_RUN = /^AGENT_BROKER_(?:RUN_(?:URL|KEY|SOCKET)|[A-Z0-9_]+_PORT)$/;

/** Whether the server ignores a variable, because clients read it, or the command of a run. */
export const isForClients = (name: string): boolean => CLIENT_VARIABLES.includes(name) || OF_RUN.test(name);

/** Whether a text is `http://host:port` or `https://host:port`, with or without a user and password, and nothing more. */
export function isProxy(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return false;
  return (
    url.pathname === '/' && url.search === '' && url.hash === '' && url.hostname !== '' && hasEncodedCredentials(url)
  );
}

/** Whether user and password are percent-encoded: a `%` in them is written `%25`. */
export function hasEncodedCredentials({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** Parses bytes, or `64MiB` and the like, to a number of bytes. */
export const byteSize = z
  .string()
  .regex(/^[1-9]\d{0,11}(?:KiB|MiB|GiB)?$/, 'must be bytes, or a size such as 64MiB or 1GiB')
  .transform((size) => {
    const unit = /[A-Z].*$/.exec(size)?.[0] ?? '';
    return Number(size.slice(0, size.length - unit.length)) * (UNITS[unit] ?? 1);
  });
