/** AWS Signature Version 4 ("Create a signed AWS API request"): builds the canonical path and query, and signs with the AWS library. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { PartValues } from '../platforms/secret-parts.ts';
import type { AwsSigV4Auth } from '../platforms/signing-auth.ts';
import type { Instant } from '../policy/facts.ts';
import { bodyHash, type Signable, type Signed } from './signable.ts';

const HASH_HEADER = 'x-amz-content-sha256';
/** Parameters of requests that write an object or a part of one. */
const OF_UPLOADS = ['partNumber', 'uploadId', 'uploads'];

/**
 * Parameters of presigned URLs (signature version 2 included): a request with one carries another credential. Also headers written as
 * parameters, as URL signers do: an agent sends allowed headers as headers.
 */
const PRESIGNED = /^(?:x-amz-.*|awsaccesskeyid|signature)$/is;

/** Signs with `access_key_id`, `secret_access_key` and, if present, `session_token` of the secret. */
export async function signWithAws(
  { method, url, headers, payload }: Signable,
  auth: AwsSigV4Auth,
  secret: PartValues,
  now: Instant,
): Promise<Signed> {
  const refuse = (error: 'endpoint_refused' | 'body_refused', detail: string): Signed => ({ ok: false, error, detail });
  if (payload.kind === 'unread' && (auth.unsigned_payload !== true || url.protocol !== 'https:'))
    return refuse(
      'body_refused',
      'the signature covers the body, so a longer one needs unsigned_payload in the manifest, and TLS; send at most 8 MiB',
    );
  const isS3 = auth.service.startsWith('s3');
  const path = isS3 ? s3Path(url.pathname) : url.pathname;
  const query = queryOf(url.search);
  if (path === undefined)
    return refuse(
      'endpoint_refused',
      'the path holds a plus sign or an escape that S3 reads in two ways; write %2B or %20',
    );
  if (typeof query === 'string') return refuse('endpoint_refused', query);
  // Loaded by the first signed request, because few brokers sign.
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const signer = new SignatureV4({
    region: auth.region,
    service: auth.service,
    credentials: {
      accessKeyId: secret.access_key_id ?? '',
      secretAccessKey: secret.secret_access_key ?? '',
      ...(secret.session_token !== undefined && { sessionToken: secret.session_token }),
    },
    sha256: Sha256,
    // All services but S3 expect the path to be escaped twice.
    uriEscapePath: !isS3,
  });
  const hash = payload.kind === 'bytes' ? bodyHash(payload.bytes).toString('hex') : 'UNSIGNED-PAYLOAD';
  // S3 requires a client checksum for settings and for DeleteObjects (Amazon S3 API, "DeleteObjects").
  const needsChecksum = isS3 && Object.keys(query).length > 0 && !OF_UPLOADS.some((name) => Object.hasOwn(query, name));
  const { headers: signed } = await signer.sign(
    {
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path,
      query,
      headers: {
        ...headers,
        host: url.host,
        [HASH_HEADER]: hash,
        ...(needsChecksum && payload.kind === 'bytes' && payload.bytes && { 'content-md5': md5(payload.bytes) }),
      },
    },
    { signingDate: new Date(now) },
  );
  const names = ['authorization', 'x-amz-date', HASH_HEADER, 'x-amz-security-token', 'content-md5'];
  return {
    ok: true,
    headers: Object.fromEntries(names.flatMap((name) => (signed[name] === undefined ? [] : [[name, signed[name]]]))),
  };
}

/** RFC 1864. All S3 stores support it; newer checksums not everywhere. */
const md5 = (bytes: Buffer | string): string => createHash('md5').update(bytes).digest('base64');

/** The path as S3 canonicalises it: unescaped and escaped again, once. Undefined when S3 may read it differently. */
function s3Path(path: string): string | undefined {
  if (path.includes('+')) return undefined;
  try {
    return decodeURIComponent(path).split('/').map(escaped).join('/');
  } catch {
    return undefined;
  }
}

/** Parses the query into unescaped names and values, or returns a sentence that says why it is refused. */
function queryOf(search: string): Record<string, string[]> | string {
  // No prototype, so that names such as `constructor` do not collide.
  const query: Record<string, string[]> = Object.create(null);
  if (search.includes('+')) return 'the query holds a plus sign, which servers read in two ways: write %2B or %20';
  for (const pair of search.slice(1).split('&')) {
    if (pair === '') continue;
    const [name = '', ...values] = pair.split('=');
    try {
      const plain = decodeURIComponent(name);
      if (PRESIGNED.test(plain))
        return `the query must not name ${plain.slice(0, 100)}: the broker signs the request, and its headers`;
      if (plain === '__proto__') return 'the query must not name __proto__';
      query[plain] = [...(query[plain] ?? []), decodeURIComponent(values.join('='))];
    } catch {
      return 'the query holds an escape that is not UTF-8';
    }
  }
  return query;
}

/** Escapes all but unreserved characters (RFC 3986 §2.3). */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

/** The hash that the library expects: SHA-256, or HMAC-SHA-256 when there is a key. */
class Sha256 {
  readonly #key: Parameters<typeof createHmac>[1] | undefined;
  #hash: Hash | Hmac;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#key = key === undefined ? undefined : bytesOf(key);
    this.#hash = this.#begin();
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    this.#hash = this.#begin();
  }

  #begin(): Hash | Hmac {
    return this.#key === undefined ? createHash('sha256') : createHmac('sha256', this.#key);
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data);
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
