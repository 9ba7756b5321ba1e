/** Live answers of the public documents, checked against the OpenAPI document and the headers that the specification fixes. */
import { beforeAll, describe, expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { NOT_YET_SERVED } from './not-yet-served.ts';
import { makeShow } from './shown.ts';
import { SPECIFICATION } from './specification.ts';

const world = givenWorld();
const published = shared(() => world.organisation());
beforeAll(() => published.ask('POST', '/owner/organisation', { publish_identity_documents: true }));

const show = makeShow(() => world.running.baseUrl);
const get = (path: string) => send(world.running.baseUrl + path, {});

describe('discovery and health', () => {
  for (const path of ['/health', '/readyz', '/livez'] as const) show(`GET ${path} → 200`, () => get(path));
  show('GET /version → 200', () => get('/version'));
  show('GET /v1/openapi.json → 200', () => get('/v1/openapi.json'));
  show('GET /v1/oauth/jwks.json → 200', () => get('/v1/oauth/jwks.json'));
  show('GET /.well-known/svc-receipt-keys.json → 200', () => get('/.well-known/svc-receipt-keys.json'));
  show('GET /.well-known/did.json → 200', () => get('/.well-known/did.json'));
  show('GET /.well-known/oauth-authorization-server → 200', () => get('/.well-known/oauth-authorization-server'));
  show('GET /.well-known/oauth-protected-resource → 200', () => get('/.well-known/oauth-protected-resource'));
  show('GET /.well-known/aa-agent-schema → 200', () => get('/.well-known/aa-agent-schema'));
  show('GET /.well-known/authzen-configuration → 200', () => get('/.well-known/authzen-configuration'));
  show('GET /.well-known/oauth-protected-resource/mcp → 200: of the MCP server', () =>
    get('/.well-known/oauth-protected-resource/mcp'),
  );
  show('GET /.well-known/svc-secret-keys.json → 200', () => get('/.well-known/svc-secret-keys.json'));
  show('GET /.well-known/svc-attestation → 200', () => get('/.well-known/svc-attestation'));
  show('GET /llms.txt → 200', () => get('/llms.txt'));
  show('GET /agent-manifest.json → 200', () => get('/agent-manifest.json'));
  const did = async (agent = {}) => get(`/agents/${(await published.agent({ grants: {}, agent })).agentId}/did.json`);
  show('GET /agents/{agentId}/did.json → 200', () => did());
  show('GET /agents/{agentId}/did.json → 404: an unknown agent', () =>
    get('/agents/agt_aaaaaaaaaaaaaaaaaaaa/did.json'),
  );
  show('GET /agents/{agentId}/did.json → 410: revoked', () => did({ status: 'revoked' }));
});

describe('the lab', () => {
  const ask = (body: unknown, headers: Record<string, string> = {}) =>
    send(`${world.running.baseUrl}/lab/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const stateless = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const version = { 'mcp-protocol-version': '2026-07-28' };
  show('POST /lab/mcp → 200: a stream', () => ask(list));
  show('POST /lab/mcp → 200: JSON', () =>
    ask({ ...list, params: { _meta: stateless } }, { ...version, 'mcp-method': 'tools/list' }),
  );
  show('POST /lab/mcp → 202: a notification', () => ask({ jsonrpc: '2.0', method: 'notifications/initialized' }));
  show('POST /lab/mcp → 400: no JSON', () => ask('{'));
  show('POST /lab/mcp → 400: an id with a fraction', () => ask({ ...list, id: 1.5 }));
  show('POST /lab/mcp → 403: a page of another site', () => ask(list, { origin: 'https://evil.example' }));
  show('POST /lab/mcp → 404: no such method', () =>
    ask({ ...list, method: 'ping', params: { _meta: stateless } }, { ...version, 'mcp-method': 'ping' }),
  );
  show('POST /lab/mcp → 406: only one of the types', () => ask(list, { accept: 'application/json' }));
  show('POST /lab/mcp → 413: too large', () => ask({ ...list, params: { x: 'x'.repeat(65_536) } }));
});

describe('a broker without keys', () => {
  const bare = givenWorld();
  beforeAll(async () => {
    const { store, keys } = bare.running.broker;
    await store.db.deleteFrom('signing_keys').where('use', 'in', ['evidence', 'root']).execute();
    await keys.refresh();
  });
  const show = makeShow(() => bare.running.baseUrl);
  show('GET /.well-known/did.json → 404: no root key', () => send(`${bare.running.baseUrl}/.well-known/did.json`, {}));
  show('GET /.well-known/svc-receipt-keys.json → 404: no evidence key', () =>
    send(`${bare.running.baseUrl}/.well-known/svc-receipt-keys.json`, {}),
  );
});

/** Headers that the specification fixes, checked in the live answer and in the document. */
const FIXED = SPECIFICATION.filter(
  ({ method, path, headers }) => headers && method === 'GET' && !NOT_YET_SERVED.includes(`GET ${path}`),
);

test.each(FIXED.map(({ path, headers }) => [path, headers!] as const))(
  'GET %s has its headers',
  async (path, headers) => {
    const agent = await published.agent({ grants: {} });
    const answer = path.startsWith('/v1/agent/')
      ? await agent.get(path)
      : await get(path.replace('{agentId}', agent.agentId));
    expect(answer.status, answer.text).toBe(200);
    for (const [name, value] of Object.entries(headers))
      expect(answer.headers.get(name), name).toEqual(typeof value === 'string' ? value : expect.stringMatching(value));
    const declared = (await get('/v1/openapi.json')).body.paths[path].get.responses[200].headers;
    expect(Object.keys(declared).map((name) => name.toLowerCase())).toEqual(
      expect.arrayContaining(Object.keys(headers)),
    );
  },
);
