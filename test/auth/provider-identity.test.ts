import { describe, expect, test } from 'vitest';
import { identityOf, isVerified } from '../../broker/auth/provider-identity.ts';

const ENTRA = 'https://login.microsoftonline.com/5f1f6d0e-6f2b-4a53-9c55-3f6b1f7f0a11/v2.0';

describe('whether an address counts as verified', () => {
  test.each<[string, Record<string, unknown>, boolean | undefined]>([
    ['https://id.example', { email_verified: true }, true],
    ['https://id.example', { email_verified: 'true' }, true],
    ['https://id.example', { email_verified: 'false' }, false],
    ['https://id.example', { email_verified: 1 }, false],
    ['https://id.example', {}, undefined],
    // At other issuers Microsoft's claim has no meaning.
    ['https://id.example', { xms_edov: true }, undefined],
    ['https://login.microsoftonline.com.evil.example/x/v2.0', { xms_edov: true }, undefined],
    ['https://evil.example/login.microsoftonline.com', { xms_edov: true }, undefined],
    [ENTRA, { xms_edov: true }, true],
    [ENTRA, { xms_edov: 1 }, true],
    [ENTRA, { xms_edov: '1' }, true],
    [ENTRA, { xms_edov: 'true' }, true],
    [ENTRA, { xms_edov: false }, false],
    [ENTRA, { xms_edov: '0' }, false],
    [ENTRA, { xms_edov: ['1'] }, false],
    [ENTRA, {}, undefined],
    ['https://acme.ciamlogin.com/5f1f6d0e/v2.0', { xms_edov: true }, true],
    // An explicit email_verified takes precedence.
    [ENTRA, { email_verified: false, xms_edov: true }, false],
  ])('%s %j: %s', (issuer, claims, is) => {
    expect(isVerified({ issuer, trustEmail: false }, claims)).toBe(is);
  });

  test('only a verified address becomes part of the identity', () => {
    const email = 'ann@acme.example';
    const subject = `${ENTRA} s`;
    const entra = { issuer: ENTRA, trustEmail: false };
    expect(identityOf(entra, 's', { email, xms_edov: '1' })).toEqual({ subject, email });
    expect(identityOf(entra, 's', { email })).toEqual({ subject, email: undefined });
    const trusted = { issuer: ENTRA, trustEmail: true };
    expect(identityOf(trusted, 's', { email, email_verified: false })).toEqual({ subject, email });
    expect(identityOf(trusted, 's', {})).toEqual({ subject, email: undefined });
    const longest = `ann@${'x'.repeat(250)}`;
    expect(identityOf(trusted, 's', { email: longest })).toEqual({ subject, email: longest });
    for (const unusable of [`${longest}x`, 'ann@acme.example\n', '\ud800@acme.example', 7, [email]])
      expect(identityOf(trusted, 's', { email: unusable }), String(unusable)).toEqual({ subject, email: undefined });
  });
});
