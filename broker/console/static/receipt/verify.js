// Verifies a receipt in the browser, with WebCrypto only: the same checks as `agent-broker verify receipt`.

/** Maximum length of a JWS in characters; longer than any receipt. */
const MAX_JWS = 65_536;
const TYPE = 'svc-receipt+jwt';
/** Header parameters with which a token could supply its own key, or change how it is verified. */
const FORBIDDEN = ['crit', 'b64', 'jwk', 'jku', 'x5u', 'x5c'];

/** The public half of an ES256 key, as published. @typedef {{ kty?: string, crv?: string, x?: string, y?: string, kid?: string }} Jwk */

/**
 * `payload`: the claims, as far as they can be parsed, trustworthy or not. `error`: why the receipt does not verify.
 *
 * @typedef {{ ok: boolean, error?: string, kid?: string, payload?: Record<string, unknown> }} Checked
 */

/** Browsers offer WebCrypto only on https and on localhost. */
export const canVerify = () => globalThis.crypto?.subtle !== undefined;

/**
 * Returns the compact JWS in a text: the JWS itself, or the JSON of the receipt route; undefined when it is neither.
 *
 * @param {string} text
 * @returns {string | undefined}
 */
export function receiptIn(text) {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{')) return trimmed || undefined;
  try {
    const { receipt } = JSON.parse(trimmed);
    return typeof receipt === 'string' ? receipt : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the result for the JSON of the receipt route in which other members than the receipt, which are not signed, differ from the signed ones;
 * otherwise the result itself.
 *
 * @param {string} text
 * @param {Checked} checked
 * @returns {Checked}
 */
export function withJson(text, checked) {
  if (!checked.ok || !text.trim().startsWith('{')) return checked;
  const json = JSON.parse(text);
  const signed = { audit_id: checked.payload?.jti, kid: checked.kid };
  for (const [name, value] of Object.entries(signed))
    if (json[name] !== undefined && json[name] !== value)
      return {
        ...checked,
        ok: false,
        error: `the ${name} of its JSON is not that of the signed receipt, which is ${value}`,
      };
  return checked;
}

/**
 * Verifies a compact JWS with published keys. Never throws because of a defective receipt.
 *
 * @param {string} jws
 * @param {readonly Jwk[]} keys
 * @returns {Promise<Checked>}
 */
export async function verifyReceipt(jws, keys) {
  if (jws.length > MAX_JWS) return { ok: false, error: `it is longer than ${MAX_JWS} characters` };
  const segments = jws.split('.', 4);
  if (segments.length !== 3) return { ok: false, error: 'a receipt has three parts, separated by dots' };
  const [headerBytes, payloadBytes, signature] = segments.map(bytesOf);
  const payload = payloadBytes && objectIn(payloadBytes);
  const refuse = (/** @type {string} */ error, /** @type {string | undefined} */ kid = undefined) => ({
    ok: false,
    error,
    ...(payload && { payload }),
    ...(kid && { kid }),
  });
  if (!headerBytes || !payloadBytes || !signature) return refuse('a part of it is not canonical base64url');
  const header = objectIn(headerBytes);
  if (!header || !payload) return refuse('a part of it is not a JSON object');
  if (header.alg !== 'ES256') return refuse('its alg is not ES256');
  const forbidden = FORBIDDEN.find((name) => Object.hasOwn(header, name));
  if (forbidden) return refuse(`its header has ${forbidden}, which is not accepted`);
  if (header.typ !== TYPE) return refuse(`its typ is not ${TYPE}`);
  const { kid } = header;
  if (typeof kid !== 'string') return refuse('it names no key');
  const jwk = keys.find((one) => one.kid === kid);
  if (!jwk) return refuse('the key set has no key of that name; a receipt by a newer key needs a newer key set', kid);
  const published = keyOf(jwk);
  if ((await published.name) !== kid) return refuse('the published key is not the one that its name says', kid);
  const signed = new TextEncoder().encode(jws.slice(0, jws.lastIndexOf('.')));
  const matches = signature.length === 64 && (await isSignedBy(await published.key, signature, signed));
  return matches ? { ok: true, kid, payload } : refuse('its signature does not match what it says', kid);
}

/** @typedef {{ name: Promise<string>, key: Promise<CryptoKey | undefined> }} Published */

/** Cache of imported keys: an export may have a million receipts of one key, and importing a key takes longer than checking a signature. @type {WeakMap<Jwk, Published>} */
const known = new WeakMap();

/** @param {Jwk} jwk @returns {Published} */
function keyOf(jwk) {
  const before = known.get(jwk);
  if (before) return before;
  const { kty, crv, x, y } = jwk;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const key = crypto.subtle
    .importKey('jwk', /** @type {JsonWebKey} */ ({ kty, crv, x, y }), algorithm, false, ['verify'])
    .catch(() => undefined);
  const made = { name: thumbprintOf(jwk), key };
  known.set(jwk, made);
  return made;
}

/** @param {CryptoKey | undefined} key @param {Uint8Array<ArrayBuffer>} signature @param {Uint8Array<ArrayBuffer>} signed */
const isSignedBy = async (key, signature, signed) =>
  key !== undefined && (await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, signature, signed));

/** Returns the key id of a key, its thumbprint (RFC 7638). @param {Jwk} jwk */
async function thumbprintOf({ crv, kty, x, y }) {
  const text = JSON.stringify({ crv, kty, x, y });
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return base64urlOf(new Uint8Array(hash));
}

/** Returns the SHA-256 of a text, in hexadecimal. @param {string} text */
export async function sha256Hex(text) {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {Uint8Array} bytes */
const base64urlOf = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** Decodes base64url. Undefined when the text is not base64url, or not the canonical encoding of its bytes. @param {string} text */
function bytesOf(text) {
  if (!/^[\w-]*$/.test(text)) return undefined;
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    // A loop takes a tenth of the time of `Uint8Array.from`.
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
    // Only the last group of a long text can have unused bits.
    const tail = Math.floor((text.length - 1) / 4) * 4;
    return base64urlOf(bytes.subarray((tail / 4) * 3)) === text.slice(tail) ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** @param {Uint8Array} bytes @returns {Record<string, unknown> | undefined} */
function objectIn(bytes) {
  try {
    const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
