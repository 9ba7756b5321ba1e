/** Types of signed requests. */
import { createHash } from 'node:crypto';
import type { AwsSigV4Auth, HmacAuth } from '../platforms/signing-auth.ts';

export type SigningAuth = AwsSigV4Auth | HmacAuth;

/** `bytes`: the whole body, undefined when there is none. `unread`: a stream that is not known yet. */
export type Payload = { kind: 'bytes'; bytes: Buffer | string | undefined } | { kind: 'unread' };

export type Signable = {
  method: string;
  url: URL;
  /** All sent headers except those that the HTTP client adds, names in lower case. */
  headers: Readonly<Record<string, string>>;
  payload: Payload;
};

/** `headers`: replace any of the same names. `detail`: as in `BuiltRequest`. */
export type Signed =
  | { ok: true; headers: Record<string, string> }
  | { ok: false; error: 'endpoint_refused' | 'body_refused' | 'credential_malformed'; detail: string };

/** SHA-256 of a body. */
export const bodyHash = (bytes: Buffer | string | undefined): Buffer =>
  createHash('sha256')
    .update(bytes ?? '')
    .digest();
