import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../broker/environment/config.ts';

const KEY = randomBytes(32).toString('base64');

/** Returns the errors of an environment, one per line. */
function complaints(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.split('\n').slice(1);
  }
  return [];
}

describe('the environment', () => {
  test('empty means loopback, port 8787, the SQLite store, and a key file beside it', () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      port: 8787,
      host: '127.0.0.1',
      baseUrl: undefined,
      databaseUrl: undefined,
      masterKey: undefined,
      limitFactor: 1,
      allowPrivate: [],
      logLevel: 'info',
    });
    expect(config.dataFolder).toMatch(/\/\.agent-broker$/);
    expect(config.keyFile).toBe(`${config.dataFolder}/keys/master.key`);
  });

  test('unrelated variables are ignored, and an empty variable counts as not set', () => {
    const config = readConfig({ PATH: '/bin', HOME: '/root', NODE_ENV: 'x', PORT: '', DATABASE_URL: '', BASE_URL: '' });
    expect([config.port, config.databaseUrl, config.baseUrl]).toEqual([8787, undefined, undefined]);
  });

  test('every invalid variable is named, with the values it accepts', () => {
    const found = complaints({
      PORT: '70000',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://x',
      AGENT_BROKER_LIMIT_FACTOR: '0',
    });
    expect(found).toHaveLength(4);
    for (const name of ['PORT', 'LOG_LEVEL', 'DATABASE_URL', 'AGENT_BROKER_LIMIT_FACTOR'])
      expect(found.join('\n')).toMatch(new RegExp(`- ${name}: .+ \\(.+\\)`));
  });

  test('a port that is too high is refused with the range, and not as a number that is not whole', () => {
    expect(complaints({ PORT: '70000' })).toEqual([
      expect.stringMatching(/- PORT: must be a port number from 0 to 65535 \(/),
    ]);
  });

  test.each(['AGENT_BROKER_MASTERKEY', 'AGENT_BROKER_DATA_FOLDER', 'AGENT_BROKER_PORT', 'AGENT_BROKER_'])(
    'an unknown name, %s, is an error instead of being ignored',
    (name) => {
      expect(complaints({ [name]: 'x' })).toEqual([expect.stringContaining(`${name} is not a setting of the broker`)]);
    },
  );

  test.each(['AGENT_BROKER_URL', 'AGENT_BROKER_AGENT_ID', 'AGENT_BROKER_PRIVATE_KEY'])(
    '%s is a setting of clients, and accepted',
    (name) => {
      expect(complaints({ [name]: 'x' })).toEqual([]);
    },
  );

  test.each(['AGENT_BROKER_RUN_URL', 'AGENT_BROKER_RUN_KEY', 'AGENT_BROKER_RUN_SOCKET', 'AGENT_BROKER_STRIPE_PORT'])(
    '%s, which agent-broker run sets for its command, does not keep a broker from starting there',
    (name) => {
      expect(complaints({ [name]: 'x' })).toEqual([]);
    },
  );

  test.each([
    ['1000', 1000],
    ['16KiB', 16 * 1024],
    ['64MiB', 64 * 1024 ** 2],
    ['1GiB', 1024 ** 3],
  ])('GIT_MAX_REQUEST_BYTES=%s is %i bytes', (text, bytes) => {
    expect(readConfig({ GIT_MAX_REQUEST_BYTES: text }).gitMaxRequestBytes).toBe(bytes);
  });

  test.each(['http://127.0.0.1:6379', 'redis:6379', '127.0.0.1', 'redis://:100%@127.0.0.1'])(
    'RATE_LIMIT_URL=%s is rejected by name',
    (value) => {
      const found = complaints({ DATABASE_URL: 'postgres://127.0.0.1/x', RATE_LIMIT_URL: value });
      expect(found).toEqual([expect.stringContaining('- RATE_LIMIT_URL: ')]);
    },
  );

  test('DATABASE_READ_URL requires DATABASE_URL, and no error contains either value', () => {
    expect(complaints({ DATABASE_READ_URL: 'postgres://u:secret@standby/x' })).toEqual([
      expect.stringContaining('- DATABASE_READ_URL goes with DATABASE_URL'),
    ]);
    const [wrong] = complaints({
      DATABASE_URL: 'postgres://127.0.0.1/x',
      DATABASE_READ_URL: 'mysql://u:secret@standby/x',
    });
    expect(wrong).toContain('- DATABASE_READ_URL: must begin with postgres://');
    expect(wrong).not.toContain('secret');
  });

  test('RATE_LIMIT_URL requires DATABASE_URL, except for `none`', () => {
    expect(complaints({ RATE_LIMIT_URL: 'redis://127.0.0.1' })).toEqual([
      expect.stringContaining('- RATE_LIMIT_URL goes with DATABASE_URL'),
    ]);
    expect(readConfig({ RATE_LIMIT_URL: 'none' }).rateLimitUrl).toBe('none');
  });

  test.each<[string, string]>([
    ['PORT', '-1'],
    ['PORT', 'http'],
    ['PORT', '80.5'],
    ['PORT', '0x50'],
    ['PORT', ' '],
    ['DRAIN_SECONDS', '0x5'],
    ['OTEL_METRIC_EXPORT_INTERVAL', '1e3'],
    ['DATABASE_CONNECTIONS', '2'],
    ['DATABASE_CONNECTIONS', '1000'],
    ['DATABASE_CONNECTIONS', '0x10'],
    ['METRICS_TOKEN', 'short'],
    ['AGENT_BROKER_METRICS', 'yes'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'no value'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['PUSH_CONTACT', 'ann@acme.example'],
    ['PUSH_CONTACT', 'http://acme.example'],
    ['GIT_MAX_REQUEST_BYTES', '0'],
    ['GIT_MAX_REQUEST_BYTES', '64MB'],
    ['GIT_MAX_REQUEST_BYTES', '1e6'],
    ['AGENT_BROKER_LIMIT_FACTOR', '-1'],
    ['AGENT_BROKER_LIMIT_FACTOR', 'Infinity'],
    ['AGENT_BROKER_LIMIT_FACTOR', '1e3'],
    ['AGENT_BROKER_ALLOW_PRIVATE', '10.0.0.1'],
    ['AGENT_BROKER_ALLOW_PRIVATE', 'http://10.0.0.1:80'],
    ['AGENT_BROKER_ALLOW_PRIVATE', '10.0.0.1:80,user@host:80'],
    ['TRUSTED_PROXIES', 'true'],
    ['TRUSTED_PROXIES', '1'],
    ['TRUSTED_PROXIES', '10.0.0.0/33'],
    ['TRUSTED_PROXIES', '10.0.0.1,'],
    ['TRUSTED_PROXIES', 'proxy.example'],
    ['BASE_URL', 'broker.example'],
    ['BASE_URL', 'ftp://broker.example'],
    ['BASE_URL', 'https://broker.example/path'],
    ['BASE_URL', 'https://broker.example?x=1'],
    ['BASE_URL', 'https://broker.example/#x'],
    ['BASE_URL', 'https://user:secret@broker.example'],
    ['BASE_URL', 'javascript:alert(1)'],
    ['PROXY_HOST', 'https://raw.example'],
    ['PROXY_HOST', 'raw.example/'],
    ['PROXY_HOST', 'user@raw.example'],
    ['PROXY_HOST', 'raw.example:99999'],
    ['PROXY_HOST', 'raw example'],
  ])('%s=%s is rejected by name', (name, value) => {
    const found = complaints({ [name]: value });
    expect(found).toEqual([expect.stringContaining(`- ${name}: `)]);
    expect(found.join()).not.toContain('secret@');
  });

  test.each<[string, string, Record<string, unknown>]>([
    ['PORT', '0', { port: 0 }],
    ['BASE_URL', 'https://broker.example/', { baseUrl: 'https://broker.example' }],
    ['BASE_URL', 'HTTPS://Broker.Example:443', { baseUrl: 'https://broker.example' }],
    ['BASE_URL', 'http://localhost:9000', { baseUrl: 'http://localhost:9000' }],
    ['PROXY_HOST', 'Raw.Broker.Example', { proxyHost: 'raw.broker.example' }],
    ['PROXY_HOST', '[fd00::1]:8443', { proxyHost: '[fd00::1]:8443' }],
    ['TRUSTED_PROXIES', 'loopback, 10.0.0.0/8,fd00::/8, 192.0.2.1', {}],
    [
      'AGENT_BROKER_ALLOW_PRIVATE',
      ' 10.0.0.1:80 ,[fd00::1]:8443,',
      { allowPrivate: ['10.0.0.1:80', '[fd00::1]:8443'] },
    ],
    ['AGENT_BROKER_KEY_FILE', '/etc/broker/master.key', { keyFile: '/etc/broker/master.key' }],
    ['METRICS_TOKEN', '0123456789abcdef', {}],
    ['OTEL_TRACES_SAMPLER_ARG', '0.5', { otel: undefined }],
    [
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'http://collector:4318/otlp/',
      { otel: { traces: new URL('http://collector:4318/otlp/v1/traces'), metrics: undefined, ratio: 0.01 } },
    ],
  ])('the twin: %s=%s is accepted', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });

  test('a master key that is set but empty is an error, not a silent change to the key file', () => {
    expect(complaints({ AGENT_BROKER_MASTER_KEY: '' })).toEqual([expect.stringContaining('is set but empty')]);
  });

  test('the host of /git and /proxy must differ from other hosts of the broker', () => {
    const base = { BASE_URL: 'https://broker.example' };
    for (const name of ['broker.example', 'BROKER.example:8443', 'localhost', '127.0.0.1:1', '[::1]'])
      expect(complaints({ ...base, PROXY_HOST: name }), name).toEqual([expect.stringContaining('PROXY_HOST')]);
    expect(complaints({ ...base, PROXY_HOST: 'raw.broker.example' })).toEqual([]);
  });

  test('a previous key without a current one, and two sources of the key, are errors', () => {
    expect(complaints({ AGENT_BROKER_MASTER_KEY_PREVIOUS: KEY })).toEqual([expect.stringContaining('is not set')]);
    expect(complaints({ AGENT_BROKER_MASTER_KEY: KEY, AGENT_BROKER_KEY_FILE: '/x' })).toEqual([
      expect.stringContaining('are both set'),
    ]);
    expect(complaints({ AGENT_BROKER_MASTER_KEY: KEY, AGENT_BROKER_MASTER_KEY_PREVIOUS: KEY })).toEqual([]);
  });

  const OIDC = { OIDC_ISSUER: 'https://id.acme.example', OIDC_CLIENT_ID: 'broker' };

  test('an identity provider keeps its issuer unchanged, never shows its secret, and requests openid', () => {
    expect(readConfig({}).oidc).toBeUndefined();
    expect(readConfig(OIDC).oidc).toEqual({
      issuer: 'https://id.acme.example',
      clientId: 'broker',
      clientSecret: undefined,
      scopes: 'openid email',
      trustEmail: false,
      onLoopback: false,
    });
    const config = readConfig({
      ...OIDC,
      OIDC_ISSUER: 'https://id.acme.example/realms/Acme/',
      OIDC_CLIENT_SECRET: 'oidc-secret-0123',
      OIDC_SCOPES: 'openid email profile',
      OIDC_TRUST_EMAIL: 'on',
    });
    expect(config.oidc).toMatchObject({
      issuer: 'https://id.acme.example/realms/Acme/',
      scopes: 'openid email profile',
      trustEmail: true,
    });
    expect(config.oidc!.clientSecret!.reveal()).toBe('oidc-secret-0123');
    expect(inspect(config, { depth: 9, showHidden: true }) + JSON.stringify(config)).not.toContain('oidc-secret-0123');
  });

  test('roles by groups must be JSON lists of names by role', () => {
    const roles = { admin: ['broker admins'], viewer: ['staff', 'all'] };
    const config = readConfig({ ...OIDC, OIDC_ROLES: JSON.stringify(roles) });
    expect(config.oidc!.groups).toEqual({ roles, claim: 'groups', organisation: undefined });
    const id = '6F9619FF-8B86-4D01-B42D-00CF4FC964FF';
    const OIDC_ROLES = '{"admin": ["x"]}';
    const chosen = { ...OIDC, OIDC_ROLES, OIDC_GROUPS_CLAIM: 'roles', OIDC_ROLES_ORGANISATION: id };
    expect(readConfig(chosen).oidc!.groups).toEqual({
      roles: { admin: ['x'] },
      claim: 'roles',
      organisation: id.toLowerCase(),
    });
    for (const wrong of ['admins', '[]', '{"admin": "x"}', '{"owner": ["x"]}', '{"admin": [7]}'])
      expect(complaints({ ...OIDC, OIDC_ROLES: wrong }), wrong).toEqual([
        expect.stringContaining('must be JSON with lists of groups by role'),
      ]);
    for (const empty of ['{}', '{"admin": []}'])
      expect(complaints({ ...OIDC, OIDC_ROLES: empty }), empty).toEqual([
        expect.stringContaining('must name at least one group'),
      ]);
    expect(complaints({ ...chosen, OIDC_ROLES_ORGANISATION: 'Acme' })).toEqual([
      expect.stringContaining('OIDC_ROLES_ORGANISATION: must be the id of an organisation'),
    ]);
    expect(complaints({ OIDC_ROLES })).toEqual([expect.stringContaining('OIDC_ROLES goes with OIDC_ISSUER')]);
    expect(complaints({ ...OIDC, OIDC_GROUPS_CLAIM: 'roles' })).toEqual([
      expect.stringContaining('OIDC_GROUPS_CLAIM goes with OIDC_ROLES'),
    ]);
  });

  test.each(['http://localhost:8080', 'http://127.0.0.1:9/realm', 'http://[::1]:80', 'http://id.localhost'])(
    'http is accepted for this machine only: %s',
    (issuer) => {
      expect(readConfig({ ...OIDC, OIDC_ISSUER: issuer }).oidc).toMatchObject({ issuer, onLoopback: true });
    },
  );

  test.each<[string, string]>([
    ['OIDC_ISSUER', 'http://id.acme.example'],
    ['OIDC_ISSUER', 'http://10.0.0.1'],
    ['OIDC_ISSUER', 'http://localhost.evil.test'],
    ['OIDC_ISSUER', 'http://127.0.0.1.evil.test'],
    ['OIDC_ISSUER', 'id.acme.example'],
    ['OIDC_ISSUER', 'ftp://id.acme.example'],
    ['OIDC_ISSUER', 'https://user:secret@id.acme.example'],
    ['OIDC_ISSUER', 'https://id.acme.example?tenant=x'],
    ['OIDC_ISSUER', 'https://id.acme.example/#x'],
    ['OIDC_ISSUER', 'https://id.acme.example '],
    ['OIDC_SCOPES', 'email'],
    ['OIDC_SCOPES', 'openid  email'],
    ['OIDC_SCOPES', 'openid,email'],
    ['OIDC_SCOPES', 'openid "x"'],
  ])('%s=%s is rejected for an identity provider', (name, value) => {
    const found = complaints({ ...OIDC, [name]: value });
    expect(found).toEqual([expect.stringContaining(`- ${name}: `)]);
    expect(found.join()).not.toContain('secret@');
  });

  test.each([
    ['http://witness.example', 'not https; http:// only on loopback'],
    ['https://user:pw@witness.example', 'not https'],
    ['witness.example', 'not https'],
  ])('a witness at %s is rejected', (address, why) => {
    const key = 'witness.example/w1+9e0e3a6f+BGk';
    expect(readConfig({ LOG_WITNESSES: `${key} http://127.0.0.1:9/` }).logWitnesses).toEqual([
      { vkey: key, url: 'http://127.0.0.1:9' },
    ]);
    expect(complaints({ LOG_WITNESSES: `${key} ${address}` })).toEqual([
      expect.stringMatching(new RegExp(`- LOG_WITNESSES: .*${why}`)),
    ]);
  });

  test('a witness that is listed twice is rejected', () => {
    const [one, other] = ['a.example+9e0e3a6f+BGk https://a.example', 'b.example+9e0e3a6f+BGk https://b.example'];
    expect(readConfig({ LOG_WITNESSES: `${one}, ${other}` }).logWitnesses).toHaveLength(2);
    for (const twice of [
      one,
      `${one}/`,
      'a.example+9e0e3a6f+BGk https://c.example',
      'c.example+9e0e3a6f+BGk https://a.example',
    ])
      expect(complaints({ LOG_WITNESSES: `${one},${twice}` }), twice).toEqual([
        expect.stringContaining('LOG_WITNESSES: lists a key or an address of a witness twice'),
      ]);
  });

  test('an identity provider needs both an issuer and a client id', () => {
    expect(complaints({ OIDC_ISSUER: OIDC.OIDC_ISSUER })).toEqual([expect.stringContaining('without OIDC_CLIENT_ID')]);
    for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_SCOPES'])
      expect(complaints({ [name]: 'openid' })).toEqual([
        expect.stringContaining(`${name} goes with OIDC_ISSUER, which is not set`),
      ]);
    // Without this error a forgotten secret would silently make the client a public one.
    expect(complaints({ ...OIDC, OIDC_CLIENT_SECRET: '' })).toEqual([
      expect.stringContaining('OIDC_CLIENT_SECRET is set but empty'),
    ]);
  });

  test('a key file inside the store’s folder is rejected, since backups of the store would contain it', () => {
    for (const name of ['store/master.key', 'store/a/b', 'store'])
      expect(complaints({ AGENT_BROKER_DATA: '/data', AGENT_BROKER_KEY_FILE: `/data/${name}` })).toHaveLength(1);
    expect(complaints({ AGENT_BROKER_DATA: '/data', AGENT_BROKER_KEY_FILE: '/data/store.key' })).toEqual([]);
  });

  test('CX-11 no secret of the configuration can be printed, and no error contains one', () => {
    const secrets = {
      AGENT_BROKER_MASTER_KEY: KEY,
      AGENT_BROKER_MASTER_KEY_PREVIOUS: KEY,
      METRICS_TOKEN: 'metrics-secret-0123',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=collector-secret',
      DATABASE_URL: 'postgres://user:database-secret@db/x',
    };
    const config = readConfig(secrets);
    for (const text of [
      JSON.stringify(config),
      inspect(config, { depth: 9, showHidden: true }),
      String(config.masterKey),
    ]) {
      expect(text).not.toContain(KEY);
      expect(text).not.toMatch(/secret-0123|database-secret/);
    }
    expect(config.databaseUrl!.reveal()).toBe(secrets.DATABASE_URL);
    const wrong = {
      ...secrets,
      DATABASE_URL: 'mysql://user:database-secret@db',
      METRICS_TOKEN: 'tiny-secret',
      PORT: 'x',
    };
    const said = complaints(wrong).join('\n');
    expect(said).toContain('DATABASE_URL');
    expect(said).not.toContain(KEY);
    expect(said).not.toMatch(/tiny-secret|database-secret/);
  });

  test('names of members of Object are unknown settings', () => {
    expect(complaints({ constructor: 'x', toString: 'x', __proto__: 'x' } as never)).toEqual([]);
  });
});
