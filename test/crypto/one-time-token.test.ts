import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../../broker/crypto/canonical.ts';
import { hashToken, isToken, mintToken, TOKEN_PREFIXES, type TokenKind } from '../../broker/crypto/one-time-token.ts';

const KINDS = Object.keys(TOKEN_PREFIXES) as TokenKind[];

describe.each(KINDS)('a %s token', (kind) => {
  const { token, hash } = mintToken(kind);
  const text = token.reveal();

  it('has its prefix and 256 random bits', () => {
    expect(text).toMatch(/^[a-z]{3}_[A-Za-z0-9_-]{43}$/);
    expect(text.startsWith(TOKEN_PREFIXES[kind])).toBe(true);
    expect(mintToken(kind).token.equals(token)).toBe(false);
  });

  it('has a hash for its own kind only', () => {
    expect(hash).toBe(sha256Hex(text));
    for (const other of KINDS) expect(hashToken(text, other)).toBe(other === kind ? hash : undefined);
  });

  it('matches its own hash only', () => {
    expect(isToken(text, kind, hash)).toBe(true);
    expect(isToken(mintToken(kind).token.reveal(), kind, hash)).toBe(false);
    expect(isToken('', kind, '')).toBe(false);
    expect(isToken(text, kind, '')).toBe(false);
  });

  it('is not revealed when it is printed', () => {
    expect(inspect({ token, hash }) + JSON.stringify({ token, hash })).not.toContain(text);
  });
});

describe('hashToken returns undefined for a malformed token', () => {
  const text = mintToken('invite').token.reveal();
  it.each([
    ['the empty string', ''],
    ['the prefix alone', 'inv_'],
    ['one character too few', text.slice(0, -1)],
    ['one character too many', `${text}A`],
    ['padding', `${text}=`],
    ['a leading space', ` ${text}`],
    ['base64url with non-zero unused bits', `inv_${'A'.repeat(42)}B`],
    ['a character of another alphabet', `inv_${'A'.repeat(42)}+`],
    ['NUL', `inv_${'A'.repeat(42)}\0`],
  ])('%s', (_name, presented) => {
    expect(hashToken(presented, 'invite')).toBeUndefined();
    expect(hashToken(text, 'invite')).toBeDefined();
  });

  it('any text, without throwing', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (any) => hashToken(`inv_${any}`, 'invite') === undefined));
  });
});
