/** Client data of a WebAuthn ceremony (WebAuthn section 5.8.1). */
import { isUtf8 } from 'node:buffer';
import { parseStrictJson } from '../../../json/strict.ts';
import type { Broker } from '../../broker.ts';
import { decodeBase64url } from '../../crypto/strict-decoding.ts';

/** The relying party: the host name, and the only accepted origin. */
export type RelyingParty = { id: string; name: string; origin: string };

export const relyingPartyOf = ({ baseUrl }: Pick<Broker, 'baseUrl'>): RelyingParty => ({
  id: new URL(baseUrl).hostname,
  name: 'Agent Broker',
  origin: new URL(baseUrl).origin,
});

export type ClientData = { type: 'webauthn.create' | 'webauthn.get'; challenge: string };

/**
 * Parses and validates client data. In addition to the library, it refuses ceremonies in cross-origin frames (`crossOrigin`), and
 * ambiguous JSON (duplicate members).
 * @returns a sentence, when it is refused
 */
export function readClientData(text: string, type: ClientData['type'], { origin }: RelyingParty): ClientData | string {
  const bytes = decodeBase64url(text);
  const parsed = bytes && isUtf8(bytes) ? parseStrictJson(bytes.toString('utf8')) : undefined;
  const value = parsed?.ok ? parsed.value : undefined;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'clientDataJSON is not a JSON object in base64url.';
  if (value.type !== type) return `clientDataJSON must be of type ${type}.`;
  if (typeof value.challenge !== 'string') return 'clientDataJSON has no challenge.';
  if (value.origin !== origin) return `The passkey was used on another site than ${origin}.`;
  if ((value.crossOrigin !== undefined && value.crossOrigin !== false) || value.topOrigin !== undefined)
    return 'The passkey was used inside the page of another site (cross-origin).';
  return { type, challenge: value.challenge };
}
