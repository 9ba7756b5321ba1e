/** Results of a token request. */
import type { Secret } from '../crypto/secret.ts';
import type { AccessToken } from './access-token.ts';

/** Only an owner can help. `of`: the connection is unusable, or only this call exceeds what it may do. */
export type TokenRefusal = { kind: 'refused'; of: 'connection' | 'call'; detail: string };

export type Exchanged =
  | { kind: 'token'; token: Secret; life: TokenLife }
  | TokenRefusal
  /** The issuer is temporarily unavailable; a retry may succeed. */
  | { kind: 'unavailable'; code: 'token_unavailable'; detail: string };

/** Both times are known: a token issued without a person is kept for an hour at most. */
export type TokenLife = { [part in keyof Pick<AccessToken, 'refreshAt' | 'expiresAt'>]: number };

export const unavailable = (detail: string): Exchanged => ({ kind: 'unavailable', code: 'token_unavailable', detail });
