/** Forms of the values that environment variables take. */
import { isIP } from 'node:net';

/** Our identifiers are made of the host alone (did:web, rpId), so a path would make addresses that nobody serves. */
export function isOrigin(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text) && `${new URL(text).origin}/` === new URL(text).href;
}

/** A name or an address, with a port or without. */
export function isHost(text: string): boolean {
  const url = URL.parse(`http://${text}`);
  return url !== null && /^[^\s/?#@\\]+$/.test(text) && url.href === `http://${url.host}/` && url.hostname !== '';
}

/** What Express takes for a proxy: an address, a range in CIDR form, or one of its three names for private ranges. */
export function isAddressRange(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true;
  const [address = '', bits, more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** RFC 8252 section 8.3: on this machine alone http is good enough. */
export const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;

/** OpenID Connect Discovery section 3: https, without query or fragment; and nothing that would end up in a log. */
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

/** Variables that the clients (`mcp`, `token`, …) read and the server only tolerates. */
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

/** `http://host:port` or `https://host:port`, with a user and password or without, and nothing more. */
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
