/** Authentication of OAuth clients by `client_secret_basic` (RFC 6749 section 2.3.1). */
import type { ClientAuth } from 'openid-client';
import type { Secret } from '../crypto/secret.ts';

/**
 * The value of `Authorization`. Both parts are form-encoded first, encoding no more than necessary: many servers do not decode, so `-`, `_`
 * and `.`, which most ids and secrets contain, must stay as they are.
 */
export const clientBasic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`;

/** The same for openid-client, whose own version also encodes `-`, `_` and `.`. */
export const clientSecretBasic =
  (secret: Secret): ClientAuth =>
  (_server, { client_id: id }, _body, headers) =>
    headers.set('authorization', clientBasic(id, secret.reveal()));

/** `application/x-www-form-urlencoded` (WHATWG URL, section 5). */
const formEncoded = (text: string): string => new URLSearchParams([[text, '']]).toString().slice(0, -1);
