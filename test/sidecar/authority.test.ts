/** The certificate authority of a run, verified by OpenSSL's strict implementation of RFC 5280. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeAuthority } from '../../mcp/sidecar/authority.ts';
import { newFolder } from '../world/stores.ts';

describe('the authority', () => {
  test.each([
    [['api.example'], 'DNS:api.example'],
    [['10.0.0.1'], 'IP Address:10.0.0.1'],
    [['::1', 'api.example'], 'IP Address:0:0:0:0:0:0:0:1'],
    [['api.example', '10.0.0.1', `${'a'.repeat(63)}.example`], 'DNS:api.example'],
  ])('issues a valid certificate for each of %j', (hosts, name) => {
    const { certificate, certificateOf } = makeAuthority(hosts);
    const folder = newFolder();
    writeFileSync(join(folder, 'authority.pem'), certificate);
    for (const host of hosts) {
      writeFileSync(join(folder, 'server.pem'), certificateOf(host).cert);
      const verify = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', 'authority.pem', 'server.pem'];
      expect(execFileSync('openssl', verify, { cwd: folder, encoding: 'utf8' })).toBe('server.pem: OK\n');
    }
    const [first = ''] = hosts;
    expect(new X509Certificate(certificateOf(first).cert).subjectAltName).toBe(name);
    expect(certificateOf(first)).toBe(certificateOf(first));
  });

  test.each([
    [['api.example'], ['DNS:api.example'], ['IP:0.0.0.0/0.0.0.0', 'IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0']],
    [['10.0.0.1'], ['IP:10.0.0.1/255.255.255.255'], ['DNS:']],
    [
      ['::1', 'api.example'],
      ['IP:0:0:0:0:0:0:0:1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF', 'DNS:api.example'],
      undefined,
    ],
  ])('its own certificate of %j can sign servers’ certificates for these hosts only', (hosts, permitted, excluded) => {
    const extensions = execFileSync(
      'openssl',
      ['x509', '-noout', '-ext', 'basicConstraints,keyUsage,extendedKeyUsage,nameConstraints'],
      { input: makeAuthority(hosts).certificate, encoding: 'utf8' },
    );
    expect(extensions.split('\n').map((line) => line.trim())).toEqual([
      ...['X509v3 Basic Constraints: critical', 'CA:TRUE, pathlen:0'],
      ...['X509v3 Key Usage: critical', 'Certificate Sign'],
      ...['X509v3 Extended Key Usage:', 'TLS Web Server Authentication'],
      ...['X509v3 Name Constraints: critical', 'Permitted:', ...permitted],
      ...(excluded ? ['Excluded:', ...excluded] : []),
      '',
    ]);
  });

  test('issues no certificate for another host, and does not expose its own key', () => {
    const authority = makeAuthority(['api.example']);
    for (const host of ['evil.example', 'sub.api.example', 'API.EXAMPLE', '*.example', '127.0.0.1', ''])
      expect(() => authority.certificateOf(host)).toThrow(RangeError);
    const { publicKey } = new X509Certificate(authority.certificate);
    const { key } = authority.certificateOf('api.example');
    expect(new X509Certificate(authority.certificateOf('api.example').cert).publicKey.equals(publicKey)).toBe(false);
    expect(Object.values(authority).filter((value) => typeof value !== 'function')).toEqual([authority.certificate]);
    expect(authority.certificate).not.toContain('PRIVATE');
    expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----/);
  });

  test('is valid for a day', () => {
    const now = Date.parse('2026-01-31T12:00:00Z');
    const authority = makeAuthority(['api.example'], now);
    for (const pem of [authority.certificate, authority.certificateOf('api.example').cert]) {
      const { validFrom, validTo } = new X509Certificate(pem);
      expect([Date.parse(validFrom) - now, Date.parse(validTo) - now]).toEqual([-300_000, 24 * 3600_000]);
    }
  });
});
