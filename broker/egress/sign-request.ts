/**
 * Signs a request as it is sent, after it was judged: with AWS Signature Version 4, or with an HMAC over a template. The signed bytes are
 * exactly the sent bytes; a request that servers could read in two ways is refused.
 */
import type { Secret } from '../crypto/secret.ts';
import { readSecretParts } from '../platforms/secret-parts.ts';
import { namesBody } from '../platforms/signing-auth.ts';
import type { Instant } from '../policy/facts.ts';
import { signWithAws } from './aws-signature.ts';
import { signWithHmac } from './hmac-signature.ts';
import { isHeaderValue } from './outbound-request.ts';
import type { Signable, Signed, SigningAuth } from './signable.ts';

/** Limit of a signed body, which is buffered as a whole (docs/platforms.md, Signed requests). */
export const MAX_SIGNED_BYTES = 8 * 1024 * 1024;

/** Whether a signature covers the body: `none`; `whole`: always; `short`: a body over the limit may be unsigned. */
export type BodySigning = 'none' | 'whole' | 'short';

export const isSigning = (auth: { type: string }): auth is SigningAuth =>
  auth.type === 'aws_sigv4' || auth.type === 'hmac';

/**
 * Signs a request, which must not change afterwards.
 *
 * @param credential the connection's secret, in parts (`readSecretParts`)
 */
export async function signRequest(
  request: Signable,
  auth: SigningAuth,
  credential: Secret,
  now: Instant,
): Promise<Signed> {
  const read = readSecretParts(auth, credential.reveal());
  if (!read.ok)
    return {
      ok: false,
      error: 'credential_malformed',
      detail: 'the stored secret has not the parts that sign; replace it',
    };
  const { payload } = request;
  if (payload.kind === 'bytes' && Buffer.byteLength(payload.bytes ?? '') > MAX_SIGNED_BYTES)
    return { ok: false, error: 'body_refused', detail: 'a body that is signed has at most 8 MiB' };
  const signed =
    auth.type === 'aws_sigv4'
      ? await signWithAws(request, auth, read.parts, now)
      : signWithHmac(request, auth, read.parts, now);
  if (!signed.ok || Object.values(signed.headers).every(isHeaderValue)) return signed;
  return {
    ok: false,
    error: 'endpoint_refused',
    detail: 'the signature takes up something of the request that no header can carry',
  };
}

/** @param isTls whether the platform is reached over TLS only */
export function bodySigning(auth: { type: string }, isTls: boolean): BodySigning {
  if (!isSigning(auth)) return 'none';
  if (auth.type === 'hmac') return namesBody(auth) ? 'whole' : 'none';
  return auth.unsigned_payload === true && isTls ? 'short' : 'whole';
}

/** Lower-case names of headers that a signature adds; agents cannot set them. */
export function signatureHeaders(auth: SigningAuth): string[] {
  if (auth.type === 'hmac') return ['authorization', ...Object.keys(auth.headers).map((name) => name.toLowerCase())];
  return ['authorization', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token'];
}
