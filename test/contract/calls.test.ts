/** Live answers of governed calls, permissions and the agent's own routes, checked against the document. */
import { beforeAll, describe, expect } from 'vitest';
import { send } from '../world/agent.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';
import { makeShow } from './shown.ts';

let approvalId: string;
let auditId: string;
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeAll(async () => {
  await organisation.platform({ id: 'away', manifest: { base_url: 'https://127.0.0.1:8443' } });
  await organisation.platform({ id: 'bare', secret: null });
});
const agent = shared(() => organisation.agent({ grants: { demo: {}, away: {}, bare: {} } }));
const other = shared(() => organisation.agent({ grants: {} }));
beforeAll(async () => {
  approvalId = await agent.hold(WRITE);
  auditId = (await agent.act({ ...READ, scope: 'demo:none' })).body.audit_id;
  expect(auditId).toBeTruthy();
});

const show = makeShow(() => world.running.baseUrl);
const post = (path: string, body: unknown, by = agent) => by.post(path, body);
/** Without any credential, or with an invalid one. */
const bare = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
  send(world.running.baseUrl + path, { method, headers, ...(body !== undefined && { body }) });
const suspended = () => organisation.agent({ agent: { status: 'suspended', status_cause: 'owner_manual' } });

describe('governed calls', () => {
  show('POST /v1/actions → 200: the platform answered', () => agent.act(READ));
  show('POST /v1/actions → 200: the first answer again', async () => {
    const call = { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' };
    await agent.act(call, { 'idempotency-key': 'once' });
    return await agent.act(call, { 'idempotency-key': 'once' });
  });
  show('POST /v1/actions → 202: held for a person', () => agent.act(WRITE));
  show('POST /v1/actions → 400: no JSON', () => agent.act('{'));
  show('POST /v1/actions → 400: an endpoint with ..', () => agent.act({ ...READ, endpoint: '/../x' }));
  show('POST /v1/actions → 401: no bearer', () => bare('POST', '/v1/actions', {}, '{}'));
  show('POST /v1/actions → 403: a scope that is not granted', () => agent.act({ ...READ, scope: 'demo:none' }));
  show('POST /v1/actions → 403: a halted agent', async () => (await suspended()).act(READ));
  show('POST /v1/actions → 409: an agent that is not set up', async () =>
    (await organisation.agent({ agent: { status: 'pending_bind' } })).act(READ),
  );
  show('POST /v1/actions → 409: the idempotency key is taken', async () => {
    await agent.act(WRITE, { 'idempotency-key': 'taken' });
    return await agent.act({ ...WRITE, data: {} }, { 'idempotency-key': 'taken' });
  });
  show('POST /v1/actions → 412: a platform that is not connected', () => agent.act({ ...READ, platform: 'bare' }));
  show('POST /v1/actions → 502: a platform that does not answer', () => agent.act({ ...READ, platform: 'away' }));
  show('POST /v1/actions → 502: the first answer again, after a platform that broke off', async () => {
    const call = { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' };
    world.upstream.answer = (request) => request.socket.destroy();
    await agent.act(call, { 'idempotency-key': 'cut' });
    world.upstream.answer = undefined;
    const again = await agent.act(call, { 'idempotency-key': 'cut' });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    return again;
  });
});

describe('permissions', () => {
  const PATH = '/v1/agent/permissions';
  show('GET /v1/agent/permissions → 200', () => agent.get(PATH));
  show('GET /v1/agent/permissions → 304: nothing changed', async () =>
    agent.get(PATH, { 'if-none-match': (await agent.get(PATH)).headers.get('etag')! }),
  );
  show('GET /v1/agent/permissions → 401: no bearer', () => bare('GET', PATH));
  show('GET /v1/agent/permissions → 403: a halted agent', async () => (await suspended()).get(PATH));
});

describe('the agent’s own routes', () => {
  show('GET /v1/agents/me → 200', () => agent.get('/v1/agents/me'));
  show('GET /v1/agents/me → 200: while halted', async () => (await suspended()).get('/v1/agents/me'));
  show('GET /v1/agents/me → 401: not a token', () => bare('GET', '/v1/agents/me', { authorization: 'Bearer x' }));
  show('GET /v1/agents/me/pending-actions → 200', () => agent.get('/v1/agents/me/pending-actions'));
  show('GET /v1/agents/me/pending-actions → 401: no bearer', () => bare('GET', '/v1/agents/me/pending-actions'));
  const DIAGNOSTICS = '/v1/agents/self/diagnostics';
  show('POST /v1/agents/self/diagnostics → 201', () => post(DIAGNOSTICS, { message: 'odd', context: { a: 1 } }));
  show('POST /v1/agents/self/diagnostics → 400: no message', () => post(DIAGNOSTICS, {}));
  show('POST /v1/agents/self/diagnostics → 401: no bearer', () => bare('POST', DIAGNOSTICS, {}, '{}'));
  show('POST /v1/agents/self/diagnostics → 413: a message too long', () =>
    post(DIAGNOSTICS, { message: 'x'.repeat(5000) }),
  );
});

describe('approvals, access requests and receipts', () => {
  show('GET /v1/approvals/{id} → 200: pending', () => agent.get(`/v1/approvals/${approvalId}`));
  show('GET /v1/approvals/{id} → 200: denied', async () => {
    const approval_id = await agent.hold(WRITE);
    await organisation.deny(approval_id, { note: 'not today' });
    return await agent.get(`/v1/approvals/${approval_id}`);
  });
  show('GET /v1/approvals/{id} → 400: a malformed id', () => agent.get('/v1/approvals/x'));
  show('GET /v1/approvals/{id} → 401: no bearer', () => bare('GET', `/v1/approvals/${approvalId}`));
  show("GET /v1/approvals/{id} → 404: another agent's", () => other.get(`/v1/approvals/${approvalId}`));

  const ACCESS = '/v1/access-request';
  show('POST /v1/access-request → 202', () => post(ACCESS, { platform: 'demo', scope: 'demo:read' }, other));
  show('POST /v1/access-request → 200: the same is pending already', async () => {
    await post(ACCESS, { platform: 'demo', scope: 'demo:write' }, other);
    return await post(ACCESS, { platform: 'demo', scope: 'demo:write' }, other);
  });
  show('POST /v1/access-request → 400: no platform', () => post(ACCESS, {}));
  show('POST /v1/access-request → 401: no bearer', () => bare('POST', ACCESS, {}, '{}'));
  show('POST /v1/access-request → 403: no such scope', () => post(ACCESS, { platform: 'demo', scope: 'demo:none' }));
  show('POST /v1/access-request → 404: no such platform', () => post(ACCESS, { platform: 'none' }));
  show('POST /v1/access-request → 409: a scope that can be used', () =>
    post(ACCESS, { platform: 'demo', scope: 'demo:read' }),
  );
  show('POST /v1/access-request → 403: an agent that is suspended', async () =>
    post(ACCESS, { platform: 'demo' }, await suspended()),
  );
  const poll = async () => (await post(ACCESS, { platform: 'demo', scope: 'demo:delete' }, other)).body.poll_url;
  show('GET /v1/access-request/status/{token} → 200', async () => other.get(await poll()));
  show('GET /v1/access-request/status/{token} → 401: no bearer', async () => bare('GET', await poll()));
  show("GET /v1/access-request/status/{token} → 403: another agent's", async () => agent.get(await poll()));
  show('GET /v1/access-request/status/{token} → 404: no such token', () => agent.get(`${ACCESS}/status/x`));

  const receipt = (accept: string, by = agent) => by.get(`/v1/audit/${auditId}/receipt`, { accept });
  show('GET /v1/audit/{id}/receipt → 200: as JSON', () => receipt('application/json'));
  show('GET /v1/audit/{id}/receipt → 200: as a bare JWS', () => receipt('application/jose'));
  show('GET /v1/audit/{id}/receipt → 200: for an owner', () => organisation.ask('GET', `/v1/audit/${auditId}/receipt`));
  show("GET /v1/audit/{id}/receipt → 401: another agent's", () => receipt('*/*', other));
  show('GET /v1/audit/{id}/receipt → 404: no such row', () => agent.get(`/v1/audit/${approvalId}/receipt`));
});
