/** Shows a command of this machine that it reaches the broker which wrote the local credential, before it sends that, or a secret. */
import { createHmac } from 'node:crypto';

/** Of whoever asks: 22 characters of base64url, 128 bits, at least. */
export const CHALLENGE = /^[\w-]{22,128}$/;

/**
 * What only a process that knows the credential can answer: after a broker was killed, its file stays, and anybody of this machine can take its port. No other
 * broker can be made to answer for it, since each start generates another credential.
 *
 * @returns HMAC-SHA256 (RFC 2104) in base64url
 */
export const localProof = (credential: string, challenge: string): string =>
  createHmac('sha256', credential).update(`agent-broker local proof\n${challenge}`).digest('base64url');
