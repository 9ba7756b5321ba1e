/** The placeholder that a command of one run sends in place of a key. It is valid only at the sidecar of that run. */
import { randomBytes, timingSafeEqual } from 'node:crypto';

/** Capital letters and digits: valid characters in keys of every platform, and in access key ids of AWS. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const LENGTH = 32;

/** 160 random bits. */
export const newPlaceholder = (): string =>
  Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');

/** Whether a text ends in the placeholder: platforms' keys begin with their kind (`ghp_`). Compares in constant time. */
export function isShown(text: string, placeholder: string): boolean {
  const end = Buffer.from(text.slice(-LENGTH));
  return end.length === LENGTH && timingSafeEqual(end, Buffer.from(placeholder));
}

/**
 * Returns the headers without those that hold the placeholder, and whether one does: alone, after a scheme (`Bearer`, `token`), as the user
 * or the password of Basic (RFC 7617), or as the access key id of AWS Signature Version 4.
 *
 * @param rawHeaders names and values in turn
 */
export function withoutPlaceholder(
  rawHeaders: readonly string[],
  placeholder: string,
): { isShown: boolean; headers: string[] } {
  const headers: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (!keysIn(value).some((key) => isShown(key, placeholder))) headers.push(name, value);
  }
  return { isShown: headers.length < rawHeaders.length, headers };
}

function keysIn(value: string): string[] {
  const [, basic] = /^basic +(\S+)$/i.exec(value) ?? [];
  if (basic !== undefined) {
    const pair = Buffer.from(basic, 'base64').toString('utf8');
    const colon = pair.indexOf(':');
    return colon < 0 ? [pair] : [pair.slice(0, colon), pair.slice(colon + 1)];
  }
  const [, accessKeyId] = /^AWS4-HMAC-SHA256 .*\bCredential=([^/,\s]+)\//.exec(value) ?? [];
  return [accessKeyId ?? value];
}

/** `Authorization`, `X-Api-Key`, `Private-Token`, `X-Amz-Security-Token` and their like; `Idempotency-Key` is none. */
const HOLDS_A_CREDENTIAL = /^cookie$|(?:^|[-_])(?:token|secret|password|auth|authorization)$|(?<!idempotency[-_])key$/i;

/** Returns the headers without those made for credentials: a program that uses the proxy may have sent a credential of its own. */
export function withoutCredentials(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !HOLDS_A_CREDENTIAL.test(headers[i - (i % 2)] ?? ''));
}

/** Returns the password of Basic credentials (RFC 7617); undefined when the header has none. */
export function passwordIn(header: string | undefined): string | undefined {
  const [, encoded] = /^basic +(\S+)$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined;
}
