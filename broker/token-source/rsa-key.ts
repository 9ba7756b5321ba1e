/** The private key of an App or of a service account: RSA, in PEM (PKCS#1 from GitHub, PKCS#8 from Google or after a conversion). */
import { createPrivateKey, type KeyObject } from 'node:crypto';

const LABEL = /-----BEGIN ([A-Z0-9 ]{1,40})-----/g;
/** RS256 requires at least 2048 bits (RFC 7518 section 3.3). */
const SHORTEST_BITS = 2048;

/** Texts for errors that say which key is needed. */
export const APP_KEY = "the App's private key is needed, which its settings page generates";
export const ACCOUNT_KEY = 'the private key of the service account is needed, as its key file holds it';

/** `problem`: a phrase that follows "the value of …". It contains nothing of the key. */
export type RsaKey = { ok: true; key: KeyObject } | { ok: false; problem: string };

/** Parses a private key. `needed`: says which key it should be, for errors. Never throws. */
export function readRsaKey(text: string, needed: string): RsaKey {
  const refuse = (problem: string): RsaKey => ({ ok: false, problem });
  const labels = Array.from(text.matchAll(LABEL), ([, label = '']) => label);
  if (labels.length > 1) return refuse('holds several PEM blocks; give the private key alone');
  const [label] = labels;
  if (label === undefined)
    return refuse(
      'is no private key in PEM form; it begins with "-----BEGIN RSA PRIVATE KEY-----", and keeps its line breaks',
    );
  if (label === 'ENCRYPTED PRIVATE KEY' || text.includes('Proc-Type: 4,ENCRYPTED'))
    return refuse('is a private key behind a passphrase; decrypt it first: openssl rsa -in key.pem -out app.pem');
  if (!label.endsWith('PRIVATE KEY')) return refuse(`is a ${label.toLowerCase()}; ${needed}`);
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    return refuse(
      'is no private key that can be read; download it again, or generate another one, and keep its line breaks',
    );
  }
  if (key.asymmetricKeyType !== 'rsa')
    return refuse(`is a key of type ${key.asymmetricKeyType}; the signature is RS256, which needs an RSA key`);
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (bits < SHORTEST_BITS)
    return refuse(`is an RSA key of ${bits} bits; at least ${SHORTEST_BITS} are needed: generate another one`);
  return { ok: true, key };
}
