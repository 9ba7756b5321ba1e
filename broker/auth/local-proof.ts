/**
 * Proves to a command on this machine that it has reached the broker which wrote the local credential, before the command sends that credential or
 * a secret.
 */
import { createHmac } from 'node:crypto';

/** The challenge of the command: at least 22 characters of base64url (128 bits). */
export const CHALLENGE = /^[\w-]{22,128}$/;

/**
 * Computes the proof, which only a process with the credential can: after a broker was killed, its file remains, and any user of this machine can take
 * its port. Another broker cannot be used as an oracle, because each start generates a new credential.
 *
 * @returns HMAC-SHA256 (RFC 2104) in base64url
 */
export const localProof = (credential: string, challenge: string): string =>
  createHmac('sha256', credential).update(`agent-broker local proof\n${challenge}`).digest('base64url');
