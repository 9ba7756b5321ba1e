/** Signs with an HMAC (RFC 2104) over a template of request parts, and writes it into headers from templates. */
import { createHmac, randomUUID } from 'node:crypto';
import type { PartValues } from '../platforms/secret-parts.ts';
import { type HmacAuth, readTemplate, type TemplatePart } from '../platforms/signing-auth.ts';
import type { Instant } from '../policy/facts.ts';
import { bodyHash, type Signable, type Signed } from './signable.ts';

const UNREAD: Signed = {
  ok: false,
  error: 'body_refused',
  detail: 'the signature covers the body, so a body that is passed on as it comes cannot be sent; send at most 8 MiB',
};

/** Signs with `key` of the secret; `key_id` is required when a template names it. Never throws for an accepted manifest. */
export function signWithHmac(request: Signable, auth: HmacAuth, secret: PartValues, now: Instant): Signed {
  const { algorithm = 'sha256', encoding = 'hex', key_encoding: keyEncoding = 'text', timestamp = 'seconds' } = auth;
  const { url, payload } = request;
  const query = url.search.slice(1);
  const bytes = payload.kind === 'bytes' ? payload.bytes : undefined;
  const values: Partial<Record<TemplatePart, string | Buffer>> = {
    method: request.method,
    host: url.host,
    path: url.pathname,
    query,
    target: url.pathname + url.search,
    timestamp: timeIn(timestamp, now),
    nonce: randomUUID(),
    key_id: secret.key_id ?? '',
  };
  if (payload.kind === 'bytes')
    Object.assign(values, {
      body: bytes ?? '',
      body_sha256: bodyHash(bytes).toString('hex'),
      body_sha256_base64: bodyHash(bytes).toString('base64'),
    });
  const key = Buffer.from(secret.key ?? '', keyEncoding === 'text' ? 'utf8' : keyEncoding);
  const hmac = createHmac(algorithm, key);
  for (const piece of readTemplate(auth.template)) {
    const value = typeof piece === 'string' ? piece : values[piece.part];
    if (value === undefined) return UNREAD;
    hmac.update(value);
  }
  values.signature = hmac.digest(encoding);
  const headers: Record<string, string> = {};
  for (const [name, template] of Object.entries(auth.headers)) {
    const pieces = readTemplate(template).map((piece) => (typeof piece === 'string' ? piece : values[piece.part]));
    if (pieces.includes(undefined)) return UNREAD;
    headers[name.toLowerCase()] = pieces.join('');
  }
  return { ok: true, headers };
}

function timeIn(form: NonNullable<HmacAuth['timestamp']>, now: Instant): string {
  if (form === 'milliseconds') return String(now);
  return form === 'seconds' ? String(Math.floor(now / 1000)) : new Date(now).toISOString();
}
