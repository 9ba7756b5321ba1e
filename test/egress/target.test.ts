import { describe, expect, it } from 'vitest';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { checkTarget, type HostPort, isOwnAddress, parseHostPort } from '../../broker/egress/target.ts';

const own = (...texts: string[]): HostPort[] => texts.map((text) => parseHostPort(text)!);
const judge = (url: string, allowPrivate: string[] = [], ours: string[] = []) => {
  const target = checkTarget(new URL(url), { allowPrivate: new Set(allowPrivate), own: own(...ours) });
  return target.ok ? `ok ${target.host} ${target.port} ${target.listed}` : target.refused;
};

describe('SS-02, SS-03, SS-04, SS-09 the origin of a request', () => {
  it.each([
    ['https://127.0.0.1/', 'loopback'],
    ['https://2130706433/', 'loopback'],
    ['https://0x7f.1/', 'loopback'],
    ['https://0/', 'unspecified'],
    ['https://[::1]/', 'loopback'],
    ['https://[::ffff:127.0.0.1]/', 'ipv4Mapped'],
    ['https://[::]/', 'unspecified'],
    ['https://[64:ff9b::a9fe:a9fe]/', 'rfc6052'],
    ['https://169.254.169.254/latest', 'linkLocal'],
    ['https://10.1.2.3:8443/', 'private'],
    ['https://localhost/', 'loopback'],
    ['https://x.localhost/', 'loopback'],
    ['https://localhost./', 'trailing_dot'],
    ['https://up.test./', 'trailing_dot'],
    ['http://up.test/', 'scheme'],
    ['http://up.test:443/', 'scheme'],
    ['ftp://up.test/', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['unix:/run/docker.sock', 'scheme'],
    ['https://up.test:25/', 'port'],
    ['https://up.test:6379/', 'port'],
    ['https://up.test:5432/', 'port'],
    ['https://up.test:80/', 'port'],
    ['https://up.test:9443/', 'port'],
    ['https://u:p@up.test/', 'userinfo'],
    ['https://:p@up.test/', 'userinfo'],
    ['https://u@up.test/', 'userinfo'],
  ])('%s is refused: %s', (url, reason) => {
    expect(judge(url)).toBe(reason);
  });
  it('public names and addresses are allowed on 443 and 8443', () => {
    expect(judge('https://up.test/v1?x')).toBe('ok up.test 443 no');
    expect(judge('https://up.test:8443/')).toBe('ok up.test 8443 no');
    expect(judge('https://8.8.8.8/')).toBe('ok 8.8.8.8 443 no');
  });
});

describe('SS-10 an origin that the operator listed', () => {
  it('allows exactly that host and port, over http too', () => {
    expect(judge('https://10.1.2.3:8443/', ['10.1.2.3:8443'])).toBe('ok 10.1.2.3 8443 address');
    expect(judge('http://10.1.2.3:8443/', ['10.1.2.3:8443'])).toBe('ok 10.1.2.3 8443 address');
    expect(judge('https://10.1.2.3/', ['10.1.2.3:8443'])).toBe('private');
    expect(judge('https://10.1.2.4:8443/', ['10.1.2.3:8443'])).toBe('private');
    expect(judge('http://erp.corp:80/', ['erp.corp:80'])).toBe('ok erp.corp 80 name');
    expect(judge('https://up.test:9443/', ['up.test:9443'])).toBe('ok up.test 9443 name');
    expect(judge('http://[::1]:99/', ['[::1]:99'])).toBe('ok [::1] 99 address');
    expect(judge('https://0.0.0.0:99/', ['0.0.0.0:99'])).toBe('unspecified');
  });
  it('prevents the start when it is not in normal form', () => {
    for (const text of [
      '10.1.2.3',
      'x:0',
      'x:65536',
      'x:y',
      '127.1:80',
      'ⓧ:80',
      'http://x:80',
      'x:80/',
      'a b:80',
      '::1:80',
      '',
    ]) {
      expect(() => makeOutbound({ allowPrivate: [text] }), text).toThrow('is not host:port in normal form');
    }
    expect(parseHostPort('[0:0::1]:80')).toEqual({ host: '[::1]', port: 80 });
    expect(parseHostPort('ERP.corp:80')).toEqual({ host: 'erp.corp', port: 80 });
  });
});

describe('SS-08 the broker never calls itself', () => {
  it('by its base URL or its listener, listed or not', () => {
    const ours = ['broker.example:443', '127.0.0.1:8787'];
    expect(judge('https://broker.example/v1', [], ours)).toBe('own_address');
    expect(judge('https://broker.example./v1', [], ours)).toBe('own_address');
    expect(judge('http://127.0.0.1:8787/', ['127.0.0.1:8787'], ours)).toBe('own_address');
    expect(judge('http://127.0.0.1:8788/', ['127.0.0.1:8788'], ours)).toBe('ok 127.0.0.1 8788 address');
    expect(judge('https://broker.example:8443/', [], ours)).toBe('ok broker.example 8443 no');
  });
  it('by any address of the machine when it listens on all', () => {
    expect(judge('http://127.0.0.1:8787/', ['127.0.0.1:8787'], ['0.0.0.0:8787'])).toBe('own_address');
    expect(isOwnAddress(own('[::]:8787'), '127.0.0.1', 8787)).toBe(true);
    expect(isOwnAddress(own('localhost:8787'), '::1', 8787)).toBe(true);
    expect(isOwnAddress(own('0.0.0.0:8787'), '8.8.8.8', 8787)).toBe(false);
    expect(isOwnAddress(own('broker.example:8787'), '127.0.0.1', 8787)).toBe(false);
  });
});
