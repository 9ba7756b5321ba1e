/** The platform entries that the console generates from an OpenAPI document and from the fields of its form; without a browser. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readOpenApi } from '../../broker/console/static/connections/openapi.js';
import { entryOf, NOTHING, scopesAsText, scopesIn } from '../../broker/console/static/connections/own-entry.js';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';

const own = (more: Partial<typeof NOTHING>) => ({
  ...NOTHING,
  id: 'crm',
  address: 'https://crm.example/api',
  scopes: 'read\n GET /contacts',
  ...more,
});

test('an OpenAPI document becomes a platform: scopes by tag, separate for reading, changing and deleting', async () => {
  const read = await readOpenApi(
    JSON.stringify({
      openapi: '3.1.0',
      info: { title: 'Our CRM' },
      servers: [
        { url: '/relative' },
        { url: 'https://{host}.crm.example/api/', variables: { host: { default: 'eu' } } },
      ],
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
      paths: {
        '/contacts': { get: { tags: ['Contact List'] }, post: { tags: ['Contact List'] }, parameters: [] },
        '/contacts/{id}': { get: { tags: ['Contact List'] }, delete: { tags: ['Contact List'] }, options: {} },
        '/files/{name}.pdf': { get: {} },
      },
    }),
  );
  expect(read).toMatchObject({ operations: 5, address: 'https://eu.crm.example/api', auth: 'header', header: 'X-Key' });
  const entry = entryOf('rest', own({ ...read, id: 'crm' }), {});
  expect(entry.scopes).toEqual({
    'crm:contact-list.read': ['GET /contacts', 'GET /contacts/*'],
    'crm:contact-list.write': ['POST /contacts'],
    'crm:contact-list.delete': ['DELETE /contacts/*'],
    'crm:files.read': ['GET /files/*.pdf'],
  });
  expect(parsePlatformEntry(entry)).toMatchObject({ success: true });
});

test.each([
  [{ openapi: '3.1.0', components: { parameters: {} } }, '#/components/parameters/dry'],
  [{ swagger: '2.0' }, '#/parameters/dry'],
])('header parameters of a document are forwarded for unmodified clients: %j', async (document, $ref) => {
  const dry = { in: 'header', name: 'X-Dry-Run' };
  const shared = 'swagger' in document ? { parameters: { dry } } : { components: { parameters: { dry } } };
  const header = (name: string) => ({ in: 'header', name });
  const { more = '' } = await readOpenApi(
    JSON.stringify({
      ...document,
      ...shared,
      paths: {
        '/a': {
          parameters: [header('X-Tenant'), header('Accept'), header('Content-MD5'), header('a\nb: c')],
          get: { parameters: [{ $ref }, { in: 'query', name: 'x-q' }, { $ref: '#/nowhere' }] },
          post: { parameters: [header('x-tenant'), header('Authorization')] },
        },
      },
    }),
  );
  const members = await parse(more);
  expect(members).toEqual({ client_headers: ['x-tenant', 'x-dry-run'] });
  const entry = entryOf('rest', own({}), members);
  expect(parsePlatformEntry(entry)).toMatchObject({ success: true, data: members });
});

test('the base URL and the placement of the credential are read from a Swagger 2 document', async () => {
  const paths = { '/a': { get: {} } };
  const swagger = { swagger: '2.0', host: 'crm.example', basePath: '/v1', schemes: ['https'], paths };
  const of = (securityDefinitions: object) => readOpenApi(JSON.stringify({ ...swagger, securityDefinitions }));
  expect(await of({ one: { type: 'basic' } })).toMatchObject({ address: 'https://crm.example/v1', auth: 'basic' });
  expect(await of({ one: { type: 'apiKey', in: 'query', name: 'k' } })).toMatchObject({
    auth: 'query',
    parameter: 'k',
  });
  expect(await of({ one: { type: 'apiKey', in: 'header', name: 'Authorization' } })).toMatchObject({ auth: 'bearer' });
});

test.each([
  ['{}', 'not an OpenAPI document'],
  ['[]', 'not an OpenAPI document'],
  ['{"openapi":"3.0.0","paths":{"relative":{"get":{}},"/x":{"trace":{}}}}', 'no paths with operations'],
])('a document without OpenAPI operations is refused: %s', async (written, why) => {
  await expect(readOpenApi(written)).rejects.toThrow(why);
});

test.each([
  ['GET /x', 'Line 1: the name of a scope comes before'],
  ['read\nwrite\n POST /x', 'crm:read: say what it allows'],
  ['read\n FETCH /x', 'Line 2: write the name of a scope'],
  ['\n', 'at least one scope'],
])('malformed or empty scopes are refused: %j', (text, why) => {
  expect(() => scopesIn(text, 'crm')).toThrow(why);
});

test.each([
  ['bearer', {}],
  ['basic', {}],
  ['header', { prefix: 'Key ' }],
  ['query', {}],
  ['oauth2', { issuer: 'https://id.example', client_id: 'x', client_secret: 'y', consent: 'a, b' }],
] as const)('an entry with a credential of kind %s is one of a governance file', (auth, more) => {
  const entry = entryOf('rest', own({ auth, ...more }), { recipients: {} });
  expect(parsePlatformEntry(entry)).toMatchObject({ success: true, data: { auth: { type: auth } } });
  expect(JSON.stringify(entry)).not.toContain('"y"');
});

test('an MCP server needs no further OAuth settings, and its scopes convert back to the same text', () => {
  const text = 'search\n  tool search_*\n  tool get_*\nwrite\n  tool create_*';
  const entry = entryOf('mcp', own({ auth: 'oauth2', scopes: text }), {});
  expect(parsePlatformEntry(entry)).toMatchObject({ success: true, data: { kind: 'mcp', auth: { type: 'oauth2' } } });
  expect(scopesAsText(entry.scopes)).toBe(text);
});
