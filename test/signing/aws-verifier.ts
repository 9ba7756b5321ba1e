/**
 * Verifies AWS Signature Version 4 like the receiver of a request, from its raw text, implemented from the documentation alone ("Create a
 * signed AWS API request", "Authenticating Requests: Using the Authorization Header"), without code of the signer.
 */
import { createHash, createHmac } from 'node:crypto';

export type AwsKey = { access_key_id: string; secret_access_key: string; session_token?: string };
export type Received = {
  method: string;
  /** Path and query as received. */
  target: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Buffer;
};

const sha256 = (data: Buffer | string) => createHash('sha256').update(data).digest('hex');
const hmac = (key: Buffer | string, data: string) => createHmac('sha256', key).update(data).digest();

/** Escapes all bytes but unreserved characters. */
const encode = (bytes: Buffer, keep = ''): string =>
  [...bytes]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9_.~-]/.test(character) || keep.includes(character)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');

/** The bytes of an escaped text. */
const decode = (text: string): Buffer =>
  Buffer.from(
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  );

/** Returns S3's error code; undefined when the request is signed with this key, now. */
export function awsProblem(
  { method, target, headers, body }: Received,
  key: AwsKey,
  { region, service, now, unsigned = false }: { region: string; service: string; now: number; unsigned?: boolean },
): string | undefined {
  const found =
    /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/([^/,]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      String(headers.authorization),
    );
  if (!found) return 'AccessDenied';
  const [, id, day, inRegion, inService, names = '', signature] = found;
  const date = String(headers['x-amz-date']);
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (id !== key.access_key_id) return 'InvalidAccessKeyId';
  if (inRegion !== region || inService !== service || day !== date.slice(0, 8)) return 'AuthorizationHeaderMalformed';
  if (!(Math.abs(now - at) < 15 * 60_000)) return 'RequestTimeTooSkewed';
  if (headers['x-amz-security-token'] !== key.session_token) return 'InvalidToken';
  const signed = names.split(';');
  const mustBeSigned = [
    'host',
    ...Object.keys(headers).filter((name) => name.startsWith('x-amz-') || name === 'content-type'),
  ];
  if (mustBeSigned.some((name) => !signed.includes(name))) return 'AccessDenied';
  const hash = String(headers['x-amz-content-sha256']);
  if (hash !== (unsigned ? 'UNSIGNED-PAYLOAD' : sha256(body))) return 'XAmzContentSHA256Mismatch';
  const [path = '', query = ''] = target.split(/\?(.*)/s);
  const canonicalPath = service === 's3' ? encode(decode(path), '/') : encode(Buffer.from(path), '/');
  const pairs = query
    .split('&')
    .filter(Boolean)
    .map((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      return [encode(decode(name)), encode(decode(value))] as const;
    })
    .sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1));
  const canonical = [
    method,
    canonicalPath,
    pairs.map(([name, value]) => `${name}=${value}`).join('&'),
    ...signed.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    names,
    hash,
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`;
  const signing = [region, service, 'aws4_request'].reduce<Buffer>(
    (last, part) => hmac(last, part),
    hmac(`AWS4${key.secret_access_key}`, day ?? ''),
  );
  return hmac(signing, toSign).toString('hex') === signature ? undefined : 'SignatureDoesNotMatch';
}
