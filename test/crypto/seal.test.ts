import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generateMasterKey, type MasterKeys } from '../../broker/crypto/master-key.ts';
import { open, rewrap, SealError, type SealedPlace, seal, sealedWith } from '../../broker/crypto/seal.ts';

const keys: MasterKeys = { current: generateMasterKey().key, previous: [] };
const place: SealedPlace = {
  table: 'connections',
  column: 'secret',
  rowId: randomUUID(),
  organisationId: randomUUID(),
};

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(SealError);
    expect((error as SealError).message).not.toContain('CANARY');
    return (error as SealError).code;
  }
  return 'opened';
}

describe('sealing', () => {
  it('opens to the sealed bytes or text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 80 }), (bytes, text) => {
        expect(open(keys, place, seal(keys, place, Buffer.from(bytes)))).toEqual(Buffer.from(bytes));
        expect(open(keys, place, seal(keys, place, text)).toString()).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  it('opens the Uint8Array of a database row, also one that is a view', () => {
    const sealed = seal(keys, place, 'text');
    const view = new Uint8Array(sealed.length + 7);
    view.set(sealed, 5);
    expect(open(keys, place, view.subarray(5, 5 + sealed.length)).toString()).toBe('text');
  });

  it('reveals nothing of the text and adds 97 bytes', () => {
    const sealed = seal(keys, place, 'CANARY'.repeat(20));
    expect(sealed.includes('CANARY')).toBe(false);
    expect(sealed.length).toBe(120 + 97);
    expect(sealedWith(sealed)).toBe(keys.current.id);
  });

  it('refuses an incomplete place', () => {
    expect(codeOf(() => seal(keys, { ...place, rowId: '' }, 'x'))).toBe('bad_place');
    expect(codeOf(() => seal(keys, { ...place, rowId: 'a\ud800' }, 'x'))).toBe('bad_place');
  });
});

describe('KEY-01 a value sealed for one place does not open in another', () => {
  const sealed = seal(keys, place, 'CANARY');
  const others: Record<string, SealedPlace> = {
    'another row': { ...place, rowId: randomUUID() },
    'another column': { ...place, column: 'refresh_token' },
    'another table': { ...place, table: 'held_actions' },
    'another organisation': { ...place, organisationId: randomUUID() },
    'parts that join to the same text': { ...place, table: 'connection', column: 'ssecret' },
    'exchanged parts': { ...place, rowId: place.organisationId, organisationId: place.rowId },
  };
  for (const [name, other] of Object.entries(others)) {
    it(name, () => {
      expect(codeOf(() => open(keys, other, sealed))).toBe('tampered');
      const rotated = { current: generateMasterKey().key, previous: [keys.current] };
      expect(codeOf(() => rewrap(rotated, other, sealed))).toBe('tampered');
      expect(open(keys, other, seal(keys, other, 'twin')).toString()).toBe('twin');
    });
  }

  it('parts of the place that contain the separator', () => {
    const one = { ...place, table: 'a', column: 'b:c' };
    expect(codeOf(() => open(keys, { ...place, table: 'a:b', column: 'c' }, seal(keys, one, 'CANARY')))).toBe(
      'tampered',
    );
  });

  it('the data key of another value in the same place', () => {
    const mixed = Buffer.concat([seal(keys, place, 'CANARY').subarray(0, 69), sealed.subarray(69)]);
    expect(codeOf(() => open(keys, place, mixed))).toBe('tampered');
  });
});

describe('KEY-02 a modified value does not open', () => {
  const sealed = seal(keys, place, 'CANARY');

  it('with any bit flipped', () => {
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      const expected = bit < 8 ? 'malformed' : bit < 72 ? 'unknown_key' : 'tampered';
      expect(codeOf(() => open(keys, place, changed))).toBe(expected);
    }
    expect(open(keys, place, sealed).toString()).toBe('CANARY');
  });

  it('truncated anywhere, or with a byte added', () => {
    for (let length = 0; length < sealed.length; length++) {
      const code = codeOf(() => open(keys, place, sealed.subarray(0, length)));
      expect(code).toBe(length < 97 ? 'malformed' : 'tampered');
    }
    expect(codeOf(() => open(keys, place, Buffer.concat([sealed, Buffer.of(0)])))).toBe('tampered');
  });
});

describe('KEY-07 sealing the same text twice gives different values', () => {
  it('over 10,000 seals, all nonces and all data keys differ', () => {
    const seen = new Set<string>();
    const runs = 10_000;
    for (let i = 0; i < runs; i++) {
      const sealed = seal(keys, place, 'same');
      seen.add(`wrap nonce ${sealed.toString('base64', 9, 21)}`);
      seen.add(`wrapped ${sealed.toString('base64', 21, 53)}`);
      seen.add(`nonce ${sealed.toString('base64', 69, 81)}`);
      seen.add(`ciphertext ${sealed.toString('base64', 81)}`);
    }
    expect(seen.size).toBe(4 * runs);
  });
});

describe('KEY-03 rotating the master key', () => {
  const next: MasterKeys = { current: generateMasterKey().key, previous: [keys.current] };
  const sealed = seal(keys, place, 'CANARY');

  it('re-wraps the data key and leaves the ciphertext unchanged', () => {
    const rewrapped = rewrap(next, place, sealed);
    expect(sealedWith(rewrapped)).toBe(next.current.id);
    expect(rewrapped.subarray(69)).toEqual(sealed.subarray(69));
    expect(open(next, place, rewrapped).toString()).toBe('CANARY');
    expect(open({ current: next.current, previous: [] }, place, rewrapped).toString()).toBe('CANARY');
  });

  it('is idempotent', () => {
    const once = rewrap(next, place, sealed);
    expect(rewrap(next, place, once)).toBe(once);
  });

  it('opens values with the old key until it is dropped, and names the missing key afterwards', () => {
    expect(open(next, place, sealed).toString()).toBe('CANARY');
    const without = { current: next.current, previous: [] };
    expect(codeOf(() => open(without, place, sealed))).toBe('unknown_key');
    expect(() => open(without, place, sealed)).toThrow(keys.current.id);
    expect(codeOf(() => rewrap(without, place, sealed))).toBe('unknown_key');
  });

  it('a value under one key cannot be relabelled as one under the other', () => {
    const relabelled = Buffer.from(sealed);
    Buffer.from(next.current.id, 'hex').copy(relabelled, 1);
    expect(codeOf(() => open(next, place, relabelled))).toBe('tampered');
  });
});
