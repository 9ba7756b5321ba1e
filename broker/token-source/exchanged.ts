/** What becomes of asking for a token. */
import type { Secret } from '../crypto/secret.ts';
import type { AccessToken } from './access-token.ts';

/** Nobody but an owner can help. `of`: whether the connection is of no use, or only this call is beyond what it may do. */
export type TokenRefusal = { kind: 'refused'; of: 'connection' | 'call'; detail: string };

export type Exchanged =
  | { kind: 'token'; token: Secret; life: TokenLife }
  | TokenRefusal
  /** Temporary. */
  | { kind: 'unavailable'; code: 'token_unavailable'; detail: string };

/** Both moments are known: a token that is got without a person is never kept for longer than an hour. */
export type TokenLife = { [part in keyof Pick<AccessToken, 'refreshAt' | 'expiresAt'>]: number };

export const unavailable = (detail: string): Exchanged => ({ kind: 'unavailable', code: 'token_unavailable', detail });
