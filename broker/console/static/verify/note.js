// Verifies signed checkpoints (C2SP signed-note, tlog-checkpoint) with WebCrypto.

/** @typedef {{ name: string, id: string, key: Uint8Array<ArrayBuffer> }} VerifierKey */
/** @typedef {{ origin: string, size: number, root: Uint8Array }} Checkpoint */

// Loops, since exports have millions of rows with a receipt and a hash each, and iterators take ten times as long.

/** Whether the text is valid base64. @param {string} text */
export const isBase64 = (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

/** @param {string} text */
export function bytesOfBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** @param {Uint8Array} bytes */
export function hexOf(bytes) {
  let hex = '';
  for (const byte of bytes) hex += HEX[byte];
  return hex;
}

/** @param {string} hex */
export function bytesOfHex(hex) {
  const bytes = new Uint8Array(hex.length >> 1);
  for (let at = 0; at < bytes.length; at++) bytes[at] = Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

/**
 * Parses the keys of a log, one verifier key per line. Throws an Error that names the problem.
 *
 * @param {string} text
 * @returns {Promise<VerifierKey[]>}
 */
export async function readVerifierKeys(text) {
  const keys = [];
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const [, name = '', id, base64 = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(line.trim()) ?? [];
    if (id === undefined || !isBase64(base64)) throw new Error('A line is not a verifier key: expected name+id+key.');
    const material = bytesOfBase64(base64);
    if (material.length !== 33 || material[0] !== 1)
      throw new Error(`The key ${name}+${id} is not an Ed25519 key of a log.`);
    const named = new Uint8Array([...new TextEncoder().encode(`${name}\n`), ...material]);
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', named));
    if (hexOf(hash.subarray(0, 4)) !== id)
      throw new Error(`The id of the key ${name}+${id} is not the hash of its name and key.`);
    keys.push({ name, id, key: material.slice(1) });
  }
  if (keys.length === 0) throw new Error('There is no verifier key.');
  return keys;
}

/**
 * Returns the checkpoint in a note signed by one of the keys; otherwise a text with the reason why it is not valid. Line ends may be CRLF, which
 * programs such as git write on Windows: a note contains no other CR.
 *
 * @param {string} kept
 * @param {readonly VerifierKey[]} keys
 * @returns {Promise<Checkpoint | string>}
 */
export async function readCheckpoint(kept, keys) {
  const note = kept.replaceAll('\r\n', '\n');
  const split = note.lastIndexOf('\n\n');
  if (split < 0) return 'is no signed note (of a receipt, use its inclusion.checkpoint)';
  const text = note.slice(0, split + 1);
  const [origin = '', size = '', root = '', ...rest] = text.split('\n');
  if (!/^(0|[1-9]\d{0,15})$/.test(size) || !/^[A-Za-z0-9+/]{43}=$/.test(root) || rest.length !== 1)
    return 'is no checkpoint';
  for (const line of note.slice(split + 2).split('\n')) {
    const [dash, name, base64 = ''] = line.split(' ');
    if (dash !== '—' || !isBase64(base64)) continue;
    const signed = bytesOfBase64(base64);
    const key = keys.find((one) => one.name === name && one.id === hexOf(signed.subarray(0, 4)));
    if (key === undefined || key.name !== origin) continue;
    const imported = await crypto.subtle.importKey('raw', key.key, { name: 'Ed25519' }, false, ['verify']);
    if (await crypto.subtle.verify({ name: 'Ed25519' }, imported, signed.slice(4), new TextEncoder().encode(text)))
      return { origin, size: Number(size), root: bytesOfBase64(root) };
    return `has a signature of ${name} that does not verify`;
  }
  return 'is signed by none of the keys';
}
