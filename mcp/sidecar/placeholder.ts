/** What a command of one run shows in place of a key. It is worth nothing anywhere but at the sidecar of that run. */
import { randomBytes, timingSafeEqual } from 'node:crypto';

/** Capital letters and digits: what every platform's keys, and the access key ids of AWS, can be made of. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const LENGTH = 32;

/** 160 random bits. */
export const newPlaceholder = (): string =>
  Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');

/** Whether a text ends in the placeholder: platforms' keys begin with what kind they are (`ghp_`). In constant time. */
export function isShown(text: string, placeholder: string): boolean {
  const end = Buffer.from(text.slice(-LENGTH));
  return end.length === LENGTH && timingSafeEqual(end, Buffer.from(placeholder));
}

/**
 * The headers without those that hold the placeholder, and whether one does: alone, after a scheme (`Bearer`, `token`), as the user
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

/** The headers without those that are made for credentials: whoever used the proxy may have sent one of its own. */
export function withoutCredentials(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !HOLDS_A_CREDENTIAL.test(headers[i - (i % 2)] ?? ''));
}

/** The password of Basic credentials (RFC 7617); undefined: it is none. */
export function passwordIn(header: string | undefined): string | undefined {
  const [, encoded] = /^basic +(\S+)$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined;
}
