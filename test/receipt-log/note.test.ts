/** Notes compared with the examples of C2SP signed-note. */
import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  checkpointNote,
  checkpointText,
  cosignatureOf,
  generateNoteKey,
  logKey,
  readVkey,
  signHead,
  vkeyOf,
} from '../../broker/receipt-log/note.ts';

const EXAMPLE = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';

describe('signed notes', () => {
  test('the verifier key in the specification is parsed and serialised', () => {
    const key = readVkey(EXAMPLE);
    expect([key.name, key.type, key.id.toString('hex')]).toEqual(['example.com/foo', 1, '530d903a']);
    expect(vkeyOf(key)).toBe(EXAMPLE);
    expect(vkeyOf(logKey('example.com/foo', key.key))).toBe(EXAMPLE);
  });

  test.each([
    ['', 'is not a verifier key'],
    ['example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k', 'has an id that is not'],
    ['example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k', 'is of a kind that is not known'],
    ['example.com/foo+530d903a+AekyeRrm56g=', 'is of a kind that is not known'],
  ])('%j is refused', (text, why) => expect(() => readVkey(text)).toThrow(why));

  test('a checkpoint consists of the text of tlog-checkpoint and a signature line', () => {
    const { publicKey, privatePkcs8 } = generateNoteKey();
    const head = { origin: 'broker.example/orgs/1', size: 3, root: Buffer.alloc(32, 7) };
    const key = logKey(head.origin, publicKey);
    const signature = signHead(head, key, createPrivateKey({ key: privatePkcs8, format: 'der', type: 'pkcs8' }));
    expect(checkpointNote(head, signature, ['— witness.example/w1 AAAA'])).toBe(
      `broker.example/orgs/1\n3\n${head.root.toString('base64')}\n\n— broker.example/orgs/1 ${signature}\n— witness.example/w1 AAAA\n`,
    );
    expect(Buffer.from(signature, 'base64').subarray(0, 4)).toEqual(key.id);
    expect(Buffer.from(signature, 'base64')).toHaveLength(4 + 64);
  });

  test('only the line signed by the witness’s key is taken from its answer', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const cosigner = readVkey(
      vkeyOf({ ...logKey('witness.example/w1', raw), type: 4, id: idOf('witness.example/w1', raw) }),
    );
    const head = { origin: 'broker.example/orgs/1', size: 3, root: Buffer.alloc(32, 7) };
    const line = (size: number, id = cosigner.id) => {
      const time = Buffer.alloc(8);
      time.writeBigUInt64BE(1_700_000_000n);
      const text = `cosignature/v1\ntime 1700000000\n${checkpointText({ ...head, size })}`;
      const signed = sign(null, Buffer.from(text), privateKey);
      return `— witness.example/w1 ${Buffer.concat([id, time, signed]).toString('base64')}`;
    };
    expect(cosignatureOf(head, `— other.example AAAA\n${line(4)}\n${line(3)}\n`, cosigner)).toBe(line(3));
    expect(cosignatureOf(head, `${line(4)}\n`, cosigner)).toBeUndefined();
    expect(cosignatureOf(head, '', cosigner)).toBeUndefined();
    for (const other of [
      line(3).replace('w1', 'w2'),
      line(3).replace('—', '-'),
      `${line(3)} more`,
      line(3, Buffer.alloc(4)),
      '— witness.example/w1',
      '— witness.example/w1 AAAA',
      `— witness.example/w1 ${cosigner.id.toString('base64')}`,
    ])
      expect(cosignatureOf(head, `${other}\n`, cosigner), other).toBeUndefined();
    expect([cosigner.isWitness, readVkey(EXAMPLE).isWitness]).toEqual([true, false]);
  });
});

const idOf = (name: string, key: Buffer): Buffer => {
  return createHash('sha256')
    .update(`${name}\n`)
    .update(Buffer.from([4]))
    .update(key)
    .digest()
    .subarray(0, 4);
};
