/** AWS Signature Version 4 ("Create a signed AWS API request"): the canonical form of path and query, and the library that signs it. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { PartValues } from '../platforms/secret-parts.ts';
import type { AwsSigV4Auth } from '../platforms/signing-auth.ts';
import type { Instant } from '../policy/facts.ts';
import { bodyHash, type Signable, type Signed } from './signable.ts';

const HASH_HEADER = 'x-amz-content-sha256';
/** Parameters of requests that write an object or a part of one. */
const OF_UPLOADS = ['partNumber', 'uploadId', 'uploads'];

/**
 * Parameters of URLs that are signed in their query (also of signature version 2): whoever sends one has another credential. And headers
 * written as parameters, as signers of URLs do: those that an agent may send, it sends as headers.
 */
const PRESIGNED = /^(?:x-amz-.*|awsaccesskeyid|signature)$/is;

/** Signs with `access_key_id` and `secret_access_key` of the secret, and `session_token` where it has one. */
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
  // Loaded by the first request that is signed: few brokers do that.
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
    // All but S3 expect the path as it is sent to be escaped once more.
    uriEscapePath: !isS3,
  });
  const hash = payload.kind === 'bytes' ? bodyHash(payload.bytes).toString('hex') : 'UNSIGNED-PAYLOAD';
  // S3 requires a checksum of the client with settings, and with a list of objects to delete (Amazon S3 API, "DeleteObjects").
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

/** RFC 1864. All S3 stores know it; newer checksums, not all. */
const md5 = (bytes: Buffer | string): string => createHash('md5').update(bytes).digest('base64');

/** S3 unescapes the path and escapes it in its own way, once. Undefined: it may read it in another way than the one here. */
function s3Path(path: string): string | undefined {
  if (path.includes('+')) return undefined;
  try {
    return decodeURIComponent(path).split('/').map(escaped).join('/');
  } catch {
    return undefined;
  }
}

/** The query by its names, unescaped; or a sentence that says why it is refused. */
function queryOf(search: string): Record<string, string[]> | string {
  // Without members of its own that a name could meet, as `constructor`.
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

/** RFC 3986 §2.3: all but unreserved characters is escaped. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

/** The hash that the library asks for: SHA-256, or HMAC with it where there is a key. */
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
