import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { PlatformEntry } from '../../broker/config-file/schema.ts';
import { BUILTIN_PLATFORMS, parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { compileManifest, Manifest, ManifestOverrides, withOverrides } from '../../broker/platforms/manifest.ts';

const crm = {
  kind: 'rest',
  base_url: 'https://crm.example/api',
  auth: { type: 'bearer' },
  scopes: { 'crm:contacts.read': ['GET /contacts', 'GET /contacts/*'], 'crm:contacts.write': ['POST /contacts'] },
};
const oauth = { type: 'oauth2', client_id: { env: 'ID' }, client_secret: { env: 'SECRET' } };

const app = { type: 'app', app_id: '1', private_key: { file: 'app.pem' } };
const problems = (changes: object) => {
  const parsed = Manifest.safeParse({ ...crm, ...changes });
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
};

describe('a manifest is accepted', () => {
  test.each<[string, object]>([
    ['the example of the documentation', { recipients: { 'POST /contacts': ['/to', '/cc/*'] } }],
    ['auth: basic', { auth: { type: 'basic' } }],
    ['auth: header', { auth: { type: 'header', name: 'X-Api-Key', prefix: 'Token ' } }],
    ['auth: query', { auth: { type: 'query', name: 'key' } }],
    ['auth: app', { auth: { type: 'app', app_id: '1', private_key: { file: 'app.pem' }, installation_id: '42' } }],
    [
      'auth: app with permissions',
      {
        auth: { type: 'app', app_id: 'Iv1.8a61f9b3a7aba766', private_key: { env: 'KEY' } },
        scopes: { 'crm:read': ['GET /items'], 'crm:write': ['POST /items'] },
        app_permissions: {
          'crm:read': { items: 'read' },
          'crm:write': { items: 'write', flows: { access: 'write', if_allowed: 'crm:read' } },
        },
        app_operations: { 'POST /items': { items: 'write', stock: { access: 'read', if_allowed: 'crm:read' } } },
      },
    ],
    ['auth: oauth2 with an issuer', { auth: { ...oauth, issuer: 'https://id.example', scopes: ['openid', 'api'] } }],
    [
      'auth: oauth2 with endpoints',
      { auth: { ...oauth, authorization_endpoint: 'https://id.example/a', token_endpoint: 'https://id.example/t' } },
    ],
    [
      'with per-person tokens',
      { auth: { ...oauth, issuer: 'https://id.example' }, per_person: { enabled: true, asserted: ['slack'] } },
    ],
    [
      'with formats of recipients',
      {
        recipients: {
          'POST /m': [
            { pointer: '/to', format: 'id' },
            { pointer: '/cc/*', format: 'ids', optional: true },
          ],
        },
      },
    ],
    ['with reads whose redirect is followed', { follow: ['GET /contacts/*/export', 'GET /files/**'] }],
    ['with push options', { git_push_options: ['ci.skip', 'ci.variable'] }],
    ['with forbidden headers', { forbidden_headers: ['Act-As'] }],
    ['with refused headers', { refused_headers: ['act-for', 'impersonate-*'] }],
    [
      'with refused parameters',
      { refused_parameters: ['sudo', '$userProject', 'x-amz-*', { name: 'key', in: 'query' }] },
    ],
    ['with fixed headers', { headers: { 'X-Version': '2', accept: 'application/json; v=1' } }],
    ['on this machine without TLS', { base_url: 'http://127.0.0.1:4010/api' }],
    ['with a slash at the end', { base_url: 'https://crm.example/api/' }],
    ['with a scope without operations', { scopes: { 'crm:ghost': [] } }],
    ['with a GraphQL entry point', { graphql: { path: '/graphql' }, scopes: { 'crm:q': ['query *'] } }],
  ])('%s', (_, changes) => {
    expect(problems(changes)).toEqual([]);
  });

  test('for GraphQL and for MCP', () => {
    const issues = {
      kind: 'graphql',
      scopes: { 'issues:read': ['query *'], 'issues:create': ['mutation issueCreate'] },
    };
    const tools = { kind: 'mcp', attestation: 'both', scopes: { 'tools:search': ['tool search_*'] } };
    expect([problems(issues), problems(tools)]).toEqual([[], []]);
  });
});

describe('a manifest is refused, with the field and what to write', () => {
  test.each<[object, string]>([
    [{ base_uri: 'x' }, ': "base_uri" is not a field of a platform'],
    [{ kind: 'soap' }, 'kind: '],
    [{ base_url: undefined }, 'base_url: '],
    [{ base_url: 'crm.example' }, 'base_url: is not an address; write "https://host/path"'],
    [{ base_url: 'http://crm.example' }, 'base_url: must begin with "https://"'],
    [{ base_url: 'http://localhost.evil.example' }, 'base_url: must begin with "https://"'],
    [{ base_url: 'https://u:p@crm.example' }, 'base_url: holds a user name or password'],
    [{ base_url: 'https://crm.example/?v=1' }, 'base_url: holds a query or a fragment'],
    [{ base_url: 'https://crm.example/#x' }, 'base_url: holds a query or a fragment'],
    [{ base_url: 'https://CRM.example/a/../b' }, 'base_url: is not in normal form; write "https://crm.example/b"'],
    [{ base_url: 'https://crm.example//api' }, 'base_url: holds an empty path segment'],
    [{ base_url: 'https://crm.example./api' }, 'base_url: has a host name that ends in a dot'],
    [{ base_url: 'file:///etc/passwd' }, 'base_url: must begin with "https://"'],
    [{ base_url: 'https://0x7f000001/' }, 'base_url: is not in normal form; write "https://127.0.0.1/"'],
    [{ headers: { Host: 'x' } }, 'headers.Host: "Host" belongs to the connection or to the broker'],
    [{ headers: { 'Transfer-Encoding': 'chunked' } }, 'belongs to the connection or to the broker'],
    [{ headers: { 'X-Svc-Caller': 'x' } }, 'belongs to the connection or to the broker'],
    [{ headers: { 'a b': 'x' } }, 'headers.a b: is not the name of a header'],
    [{ headers: { 'x-a': 'b\r\nc: d' } }, 'headers.x-a: write printable ASCII'],
    [{ headers: { authorization: 'Bearer x' } }, 'headers.authorization: carries a credential'],
    [{ headers: { 'X-Key': 'x' }, auth: { type: 'header', name: 'x-key' } }, 'headers.X-Key: carries a credential'],
    [{ headers: { 'X-A': '1', 'x-a': '2' } }, 'headers.x-a: is given twice'],
    [{ headers: { 'X-A': '1' }, default_headers: { x_a: '2' } }, 'default_headers.x_a: is given twice'],
    [{ default_headers: { Authorization: 'x' } }, 'default_headers.Authorization: carries a credential'],
    [{ default_headers: { Cookie: 'x' } }, 'belongs to the connection or to the broker'],
    [{ forbidden_headers: ['a b'] }, 'forbidden_headers.0: is not the name of a header'],
    [{ refused_headers: ['Act-For'] }, 'refused_headers.0: write a name in lower case'],
    [{ refused_parameters: ['a[b]'] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: [''] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: ['*'] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: ['_*'] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: [{ name: 'key', in: 'body' }] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: [{ name: 'key' }] }, 'refused_parameters.0: write the name of a parameter'],
    [{ refused_parameters: Array(101).fill('sudo') }, 'refused_parameters: '],
    [
      { kind: 'mcp', scopes: { 'tools:x': ['tool x'] }, refused_parameters: ['sudo'] },
      'refused_parameters: is not for platforms of kind mcp',
    ],
    [{ auth: { type: 'digest' } }, 'auth.type: write { type: bearer }, or one of basic'],
    [{ auth: { type: 'bearer', token: 'abc' } }, 'auth: '],
    [
      { auth: { ...oauth, issuer: 'https://id.example', client_secret: 'abc' } },
      'auth.client_secret: write { env: NAME } or { file: PATH }',
    ],
    [{ auth: oauth }, 'auth.token_endpoint: is missing; give it, or an issuer'],
    [{ per_person: { enabled: true } }, 'per_person: needs auth of type oauth2'],
    [{ scopes: { 'crm read': ['GET /a'] } }, 'scopes.crm read: write a scope id'],
    [
      { scopes: { 'crm:a': ['GET contacts'] } },
      'scopes.crm:a.0: "GET contacts" is not an operation; write "GET /path/*"',
    ],
    [{ scopes: { 'crm:a': ['GET /a', 'query b'] } }, 'scopes.crm:a.1: "query b": a rest platform takes this only with'],
    [{ needs: { 'crm:other': ['x'] } }, 'needs.crm:other: is not one of the scopes above'],
    [{ app_permissions: { 'crm:other': { a: 'read' } } }, 'app_permissions.crm:other: is not one of the scopes above'],
    [
      { app_permissions: { 'crm:contacts.read': {} } },
      'app_permissions.crm:contacts.read: name at least one permission',
    ],
    [
      { app_permissions: { 'crm:contacts.read': { a: { access: 'read', if_allowed: 'crm:contacts.write' } } } },
      'name at least one permission that is always needed',
    ],
    [{ app_permissions: { 'crm:contacts.read': { a: 'all' } } }, 'app_permissions.crm:contacts.read.a: '],
    [
      { app_permissions: { 'crm:contacts.read': { a: { access: 'read', if_allowed: 'crm:other' } } } },
      'app_permissions.crm:contacts.read.a.if_allowed: is not one of the scopes above',
    ],
    [
      { auth: app, app_permissions: { 'crm:contacts.read': { contacts: 'read' } } },
      'app_permissions: has nothing for crm:contacts.write; say what the App must be allowed for it',
    ],
    [
      { app_operations: { 'POST items': { a: 'read' } } },
      'app_operations.POST items: "POST items" is not an operation',
    ],
    [{ app_operations: { 'POST /items': {} } }, 'app_operations.POST /items: name at least one permission'],
    [
      { app_operations: { 'POST /items': { a: 'read', b: { access: 'read', if_allowed: 'crm:other' } } } },
      'app_operations.POST /items.b.if_allowed: is not one of the scopes above',
    ],
    [{ kind: 'graphql', app_operations: {}, scopes: {} }, 'app_operations: is for platforms of kind rest only'],
    [{ kind: 'graphql', auth: app, scopes: {} }, 'auth.type: of an App is for platforms of kind rest only'],
    [{ auth: { ...app, installation_id: '4x' } }, 'auth.installation_id: write the number of the installation'],
    [{ auth: { ...app, private_key: 'MII' } }, 'auth.private_key: write { env: NAME } or { file: PATH }'],
    [{ recipients: { 'POST /m': ['to'] } }, 'recipients.POST /m.0: write a JSON pointer such as "/to"'],
    [{ recipients: { 'POST /m': [{ pointer: '/to', format: 'uuid' }] } }, 'recipients.POST /m.0: '],
    [{ recipients: { 'POST /m': [{ pointer: '/to', optional: 'yes' }] } }, 'recipients.POST /m.0: '],
    [{ recipients: { 'POST m': ['/to'] } }, 'recipients.POST m: "POST m" is not an operation'],
    [
      { content_scopes: { 'POST /contacts': [{ pointer: '/a', scope: 'crm:other' }] } },
      'content_scopes.POST /contacts.0.scope: is not one of the scopes above',
    ],
    [
      { content_scopes: { 'POST /contacts': [{ pointer: '/a', paths: ['a'], scope: 'crm:contacts.write' }] } },
      'content_scopes.POST /contacts.0.paths.0: "a" is not an endpoint pattern: it must begin with `/`',
    ],
    [
      {
        content_scopes: {
          'POST /contacts': [{ pointer: '/a', in: 'query', unless: ['b'], scope: 'crm:contacts.write' }],
        },
      },
      'content_scopes.POST /contacts.0.unless: is about values of a body',
    ],
    [
      { content_scopes: { 'POST /contacts': [{ pointer: '/a', is: null, unless: ['b'], scope: null }] } },
      'content_scopes.POST /contacts.0.is: says all that counts there',
    ],
    [
      { content_scopes: { 'POST /contacts': [{ is: null, scope: null }] } },
      'content_scopes.POST /contacts.0.pointer: is missing',
    ],
    [
      { content_scopes: { 'POST /contacts': [{ unless: ['b'], scope: null }] } },
      'content_scopes.POST /contacts.0.pointer: is missing',
    ],
    [
      { content_scopes: { 'POST contacts': [{ pointer: '/a', scope: 'crm:contacts.write' }] } },
      'content_scopes.POST contacts: "POST contacts" is not an operation',
    ],
    [{ refs: { 'POST contacts': [] } }, 'refs.POST contacts: "POST contacts" is not an operation'],
    [{ refs: { 'query x': [] } }, 'refs.query x: "query x": a rest platform takes this only with'],
    [
      { refs: { 'POST /a/*': [{ in: 'path', action: 'update' }] } },
      'refs.POST /a/*: refs "POST /a/*": a ref in the path is',
    ],
    [{ refs: { 'POST /a/**': [{ in: 'path', at: 'x', action: 'update' }] } }, '`at` is not for the path'],
    [{ refs: { 'POST /a': [{ in: 'body', at: 'x', action: 'update' }] } }, 'has a JSON pointer: `at: /branch`'],
    [{ refs: { 'POST /a': [{ in: 'query', action: 'update' }] } }, 'has the name of a parameter: `at: branch`'],
    [{ refs: { 'POST /a': [{ in: 'body', at: '/x', action: 'force' }] } }, 'refs.POST /a'],
    [
      { refs: { 'POST /a': [{ in: 'body', at: '/x', action: 'create', unless: { at: 'draft', is: true } }] } },
      '`unless` has a JSON pointer to one member',
    ],
    [{ refs: { 'POST /a': true } }, 'refs.POST /a: write a list such as'],
    [{ follow: ['GET contacts'] }, 'follow.0: "GET contacts" is not an operation'],
    [{ follow: ['GET /a', 'POST /b'] }, 'follow.1: "POST /b": only redirects of reads are followed'],
    [{ base_urls: { 'POST /files': 'http://u@x.example' } }, 'base_urls.POST /files'],
    [{ base_urls: { files: 'https://x.example' } }, 'base_urls.files: "files" is not an operation'],
    [{ bodies: { 'GET /files': 'text' } }, 'bodies.GET /files: "GET /files": only a call with a body takes one'],
    [{ bodies: { 'POST /files': ['json', 'form'] } }, 'an object can be written in one way only, not as json and form'],
    [{ bodies: { 'POST /files': 'xml' } }, 'bodies.POST /files: write one of json, form, multipart, list, text, bytes'],
    [{ kind: 'graphql', follow: [], scopes: {} }, 'follow: is for platforms of kind rest only'],
    [{ kind: 'graphql', refs: {}, scopes: {} }, 'refs: is for platforms of kind rest only'],
    [{ kind: 'graphql', git_push_options: [], scopes: {} }, 'git_push_options: is for platforms of kind rest only'],
    [{ git_push_options: ['ci.variable=A'] }, 'git_push_options.0: write the name of a push option, without "="'],
    [
      { refs: { 'POST /issues': [{ in: 'body', at: 'assignees', why: 'x' }] } },
      'refs.POST /issues: refs "POST /issues": a member that leaves open what is written has a JSON pointer',
    ],
    [{ attestation: 'both' }, 'attestation: is for platforms of kind mcp only'],
    [{ graphql: { path: 'graphql' } }, 'graphql.path: write a plain path such as "/graphql"'],
    [{ kind: 'graphql', body: 'form', scopes: {} }, 'body: is for platforms of kind rest only'],
  ])('%j', (changes, expected) => {
    expect(problems(changes).join('\n')).toContain(expected);
  });

  test('an MCP server with a client secret must name its issuer or token endpoint; without a secret it need not', () => {
    const server = 'https://id.example';
    const secret = { client_secret: { env: 'CRM_CLIENT_SECRET' } };
    const found = (auth: object, more: object = {}) => {
      const entry = {
        ...crm,
        kind: 'mcp',
        scopes: {},
        ...more,
        auth: { type: 'oauth2', client_id: 'broker', ...auth },
      };
      return parsePlatformEntry(entry).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
    };
    expect(found(secret)).toEqual([
      expect.stringMatching(/^auth\.issuer: is missing; a client_secret goes to one server/),
    ]);
    expect(found({ ...secret, authorization_endpoint: `${server}/authorize` })).toHaveLength(1);
    expect(found({ ...secret, issuer: server })).toEqual([]);
    const endpoints = { authorization_endpoint: `${server}/authorize`, token_endpoint: `${server}/token` };
    expect(found({ ...secret, ...endpoints })).toEqual([]);
    expect(found(secret, { oauth: endpoints })).toEqual([]);
    expect(found({})).toEqual([]);
  });

  test("names of JavaScript's built-in members as keys have no effect", () => {
    const scopes = JSON.parse('{"__proto__": ["GET /a"], "crm:a": ["GET /b"]}');
    const parsed = Manifest.safeParse({ ...crm, scopes });
    expect(({} as Record<string, unknown>)['0']).toBeUndefined();
    if (parsed.success) expect(Object.keys(parsed.data.scopes)).toEqual(['crm:a']);
  });
});

test('an accepted manifest compiles, and the error for a broken one names its platform', () => {
  expect(compileManifest('crm', Manifest.parse(crm)).scopes.size).toBe(2);
  const broken = { ...Manifest.parse(crm), scopes: { 'crm:a': ['HEAD /a'] } };
  expect(() => compileManifest('crm', broken)).toThrow('platform crm: scope crm:a: "HEAD /a": HEAD is not a method');
});

describe('use: a built-in platform with changes', () => {
  test('fields are replaced, scopes and headers are merged by entry', () => {
    const changed = parsePlatformEntry({
      use: 'github',
      base_url: 'https://github.acme.example/api/v3',
      headers: { 'X-GitHub-Api-Version': '2026-03-10' },
      scopes: { 'codehost:gists.read': [], 'codehost:acme': ['GET /acme/**'] },
    });
    expect(changed.data).toMatchObject({ kind: 'rest', base_url: 'https://github.acme.example/api/v3' });
    expect(changed.data?.headers).toEqual({ 'X-GitHub-Api-Version': '2026-03-10' });
    expect(changed.data?.default_headers).toEqual({ accept: 'application/vnd.github+json' });
    expect(changed.data?.scopes['codehost:gists.read']).toEqual([]);
    expect(changed.data?.scopes['codehost:acme']).toEqual(['GET /acme/**']);
    expect(changed.data?.scopes['codehost:issues.read']).toEqual(
      BUILTIN_PLATFORMS.github.scopes['codehost:issues.read'],
    );
  });

  test('a changed header is fixed or a default, as the override states', () => {
    const headers = { Accept: 'application/json' };
    const fixed = parsePlatformEntry({ use: 'github', headers });
    expect(fixed.data).toMatchObject({ headers: { 'x-github-api-version': '2022-11-28', ...headers } });
    expect(fixed.data?.default_headers).toEqual({});
    const free = parsePlatformEntry({ use: 'github', default_headers: { 'X-GitHub-Api-Version': '2026-03-10' } });
    expect(free.data?.headers).toEqual({});
    expect(Object.keys(free.data?.default_headers ?? {})).toEqual(['accept', 'X-GitHub-Api-Version']);
  });

  test('with another base URL, the git base URL of the built-in platform is dropped', () => {
    const { github } = BUILTIN_PLATFORMS;
    const base_url = 'https://github.acme.example/api/v3';
    const git_base_url = 'https://github.acme.example';
    expect(withOverrides(github, { base_url }).git_base_url).toBeUndefined();
    expect(withOverrides(github, { base_url, git_base_url }).git_base_url).toBe(git_base_url);
    expect(withOverrides(github, { name: 'Code' }).git_base_url).toBe('https://github.com');
    expect(withOverrides(github, { base_url: 'https://api.github.com/' }).git_base_url).toBe('https://github.com');
  });

  test('the built-in manifest itself is not modified', () => {
    const before = structuredClone(BUILTIN_PLATFORMS.notion);
    withOverrides(BUILTIN_PLATFORMS.notion, { scopes: { 'notion:x': [] }, headers: { a: 'b' } });
    expect(BUILTIN_PLATFORMS.notion).toEqual(before);
  });

  test('refused headers are replaced as a whole, so that an operator can permit them', () => {
    expect(parsePlatformEntry({ use: 'stripe' }).data?.refused_headers).toEqual(['stripe-account', 'stripe-context']);
    const opened = parsePlatformEntry({ use: 'stripe', refused_headers: ['stripe-context'] });
    expect(opened.data?.refused_headers).toEqual(['stripe-context']);
  });

  test('with another base URL, the upload URLs of the built-in platform are dropped, since they would receive its tokens', () => {
    const uploads = { 'POST /repos/*/*/releases/*/assets': 'https://uploads.github.com' };
    expect(parsePlatformEntry({ use: 'github' }).data?.base_urls).toEqual(uploads);
    const entry = { use: 'github', base_url: 'https://ghe.example/api/v3' };
    expect(parsePlatformEntry(entry).data?.base_urls).toBeUndefined();
    const own = { 'POST /repos/*/*/releases/*/assets': 'https://ghe.example/api/uploads' };
    expect(parsePlatformEntry({ ...entry, base_urls: own }).data?.base_urls).toEqual(own);
  });

  test('OAuth needs only a client: the endpoints are built in', () => {
    const { data } = parsePlatformEntry({ use: 'slack', auth: oauth, per_person: { enabled: true } });
    expect(data?.oauth?.token_endpoint).toBe('https://slack.com/api/oauth.v2.access');
  });

  test.each<[object, string]>([
    [{ use: 'gitlab' }, 'use: '],
    [{ use: 'github', kind: 'graphql' }, '"kind" is not a field'],
    [{ use: 'github', base_url: 'https://x.example/?a' }, 'holds a query'],
    [{ use: 'github', scopes: { 'codehost:x': ['GET x'] } }, 'is not an operation'],
  ])('%j is refused', (entry, expected) => {
    const { error } = parsePlatformEntry(entry);
    expect(error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n')).toContain(expected);
  });
});

describe('the JSON Schema for editors', () => {
  const schema = z.toJSONSchema(PlatformEntry, { io: 'input' });

  test('can be generated, and refuses unknown fields', () => {
    expect(JSON.stringify(schema)).toContain('"additionalProperties":false');
  });

  test('describes every field in a sentence', () => {
    const { properties } = z.toJSONSchema(Manifest, { io: 'input' });
    expect(Object.keys(properties ?? {})).toHaveLength(Object.keys(ManifestOverrides.shape).length + 1);
    for (const [name, field] of Object.entries(properties ?? {})) {
      expect(typeof field === 'object' && field.description, name).toMatch(/^[A-Z].*\.$/s);
    }
  });
});
