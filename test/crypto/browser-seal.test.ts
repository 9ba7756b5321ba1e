import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openFromBrowser, sealForBrowser } from '../../broker/crypto/browser-seal.ts';
import { generateMasterKey, type MasterKeys } from '../../broker/crypto/master-key.ts';

const keys: MasterKeys = { current: generateMasterKey().key, previous: [] };

describe('state sealed for a browser', () => {
  test('opens to the same text, and reveals nothing of it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 4 }), (text) => {
        const sealed = sealForBrowser(keys, 'a purpose', text);
        expect(sealed).toMatch(/^[\w-]+$/);
        expect(openFromBrowser(keys, 'a purpose', sealed)).toBe(text);
        expect(Buffer.from(sealed, 'base64url').includes(text)).toBe(false);
        expect(sealForBrowser(keys, 'a purpose', text)).not.toBe(sealed);
      }),
    );
  });

  test('opens only for its own purpose and with its own key', () => {
    const sealed = sealForBrowser(keys, 'a purpose', 'CANARY');
    expect(openFromBrowser(keys, 'another', sealed)).toBeUndefined();
    const others: MasterKeys = { current: generateMasterKey().key, previous: [] };
    expect(openFromBrowser(others, 'a purpose', sealed)).toBeUndefined();
    // After a rotation, the previous key still opens it.
    expect(openFromBrowser({ ...others, previous: [keys.current] }, 'a purpose', sealed)).toBe('CANARY');
  });

  test('does not open when any bit is changed, when it is truncated, or for any other text', () => {
    const sealed = sealForBrowser(keys, 'a purpose', 'CANARY');
    const bytes = Buffer.from(sealed, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const altered = Buffer.from(bytes);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      expect(openFromBrowser(keys, 'a purpose', altered.toString('base64url'))).toBeUndefined();
    }
    for (let length = 0; length < bytes.length; length++)
      expect(openFromBrowser(keys, 'a purpose', bytes.subarray(0, length).toString('base64url'))).toBeUndefined();
    for (const text of ['', 'x', `${sealed}=`, `${sealed}A`, ` ${sealed}`, 'A'.repeat(100)])
      expect(openFromBrowser(keys, 'a purpose', text)).toBeUndefined();
  });
});
