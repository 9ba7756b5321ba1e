/** Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint, tlog-cosignature), with Ed25519. */
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto';

/** Signature types of signed-note: of the log itself, and of a witness with the time of its signature. */
const LOG_TYPE = 0x01;
const COSIGNATURE_TYPE = 0x04;

/** DER prefix of a 32-byte Ed25519 public key (RFC 8410 section 4). */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

/** The key of a note, as in its vkey. `key`: 32 bytes. `isWitness`: it co-signs checkpoints of logs. */
export type NoteKey = { name: string; type: number; id: Buffer; key: Buffer; isWitness: boolean };

/** Generates a key pair: `publicKey` 32 bytes, `privatePkcs8` DER, to be sealed. */
export function generateNoteKey(): { publicKey: Buffer; privatePkcs8: Buffer } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI_HEAD.length),
    privatePkcs8: privateKey.export({ format: 'der', type: 'pkcs8' }),
  };
}

const keyId = (name: string, type: number, key: Uint8Array): Buffer =>
  hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), key]), 'buffer').subarray(0, 4);

/** The key of a log by its name, which is the log's origin. */
export const logKey = (name: string, key: Buffer): NoteKey => ({
  name,
  type: LOG_TYPE,
  id: keyId(name, LOG_TYPE, key),
  key,
  isWitness: false,
});

/** Returns the verifier key for others: `name+id+key`. */
export const vkeyOf = ({ name, type, id, key }: NoteKey): string =>
  `${name}+${id.toString('hex')}+${Buffer.concat([Buffer.from([type]), key]).toString('base64')}`;

/** Parses a vkey of an Ed25519 key, of a log or a witness. @throws Error that says what is wrong */
export function readVkey(text: string): NoteKey {
  const [, name, hexId, base64] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/.exec(text.trim()) ?? [];
  if (name === undefined || hexId === undefined || base64 === undefined)
    throw new Error('is not a verifier key: expected name+id+key');
  const bytes = Buffer.from(base64, 'base64');
  const type = bytes[0];
  if (bytes.length !== 33 || (type !== LOG_TYPE && type !== COSIGNATURE_TYPE))
    throw new Error('is of a kind that is not known: expected an Ed25519 key');
  const key = bytes.subarray(1);
  const id = keyId(name, type, key);
  if (id.toString('hex') !== hexId) throw new Error('has an id that is not the hash of its name and key');
  return { name, type, id, key, isWitness: type === COSIGNATURE_TYPE };
}

/** A tree head. `root`: 32 bytes. */
export type TreeHead = { origin: string; size: number; root: Uint8Array };

/** The text of a checkpoint, which is signed. */
export const checkpointText = ({ origin, size, root }: TreeHead): string =>
  `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;

/** Signs a tree head. Returns the signature as in a note: base64 of the key's id and the signature. */
export function signHead(head: TreeHead, { id }: Pick<NoteKey, 'id'>, privateKey: KeyObject): string {
  return Buffer.concat([id, sign(null, Buffer.from(checkpointText(head)), privateKey)]).toString('base64');
}

/** Builds the checkpoint as a note. `lines`: signature lines of witnesses. */
export const checkpointNote = (head: TreeHead, signature: string, lines: readonly string[] = []): string =>
  `${checkpointText(head)}\n— ${head.origin} ${signature}\n${lines.map((line) => `${line}\n`).join('')}`;

/**
 * Returns the first line of a witness's answer that is a valid cosignature of this head, without its newline; undefined: there is none.
 */
export function cosignatureOf(head: TreeHead, answer: string, witness: NoteKey): string | undefined {
  const publicKey = createPublicKey({ key: Buffer.concat([SPKI_HEAD, witness.key]), format: 'der', type: 'spki' });
  return answer.split('\n').find((line) => {
    const [dash, name, base64, ...more] = line.split(' ');
    if (dash !== '—' || name !== witness.name || base64 === undefined || more.length > 0) return false;
    const bytes = Buffer.from(base64, 'base64');
    // Key id, time as 64 bits, signature.
    if (bytes.length !== 4 + 8 + 64 || !bytes.subarray(0, 4).equals(witness.id)) return false;
    const message = `cosignature/v1\ntime ${bytes.readBigUInt64BE(4)}\n${checkpointText(head)}`;
    return verify(null, Buffer.from(message), publicKey, bytes.subarray(12));
  });
}
