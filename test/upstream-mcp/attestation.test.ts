/** Attestations on calls to MCP servers (specification, section of that name), verified as a server would: with published keys only. */
import { createRemoteJWKSet, decodeJwt, type JWTPayload, jwtVerify } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { givenWorld, shared, startWorld } from '../world/world.ts';
import { callOf, connected, SCOPES, SEARCH } from './connected.ts';

const mcp = shared(() => startMcpServer());
const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: mcp.address }));
beforeEach(() => {
  mcp.seen = [];
});
const discovered = async () => (await send(`${world.running.baseUrl}/.well-known/svc-attestation`, {})).body;
const seenCall = () => mcp.seen.find(({ rpc }) => rpc === 'tools/call')!;

/** Verifies a token as a careful server would. */
async function verified(token: string, audience = mcp.url): Promise<JWTPayload> {
  const { jwks_uri, issuer, typ, alg, ttl_seconds } = await discovered();
  const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(jwks_uri)), {
    issuer,
    audience,
    typ,
    algorithms: [alg],
    maxTokenAge: ttl_seconds,
    requiredClaims: ['exp', 'iat', 'jti', 'sub'],
  });
  return payload;
}

test('the discovery document contains everything a server needs to verify attestations', async () => {
  const answer = await expectStatus(200, send(`${world.running.baseUrl}/.well-known/svc-attestation`, {}));
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  expect(answer.body).toEqual({
    v: 1,
    issuer: world.running.broker.did,
    jwks_uri: `${world.running.baseUrl}/.well-known/svc-receipt-keys.json`,
    header: 'X-Svc-Attestation',
    meta_key: 'ai.svc/attestation',
    typ: 'svc-attest+jwt',
    alg: 'ES256',
    ttl_seconds: 120,
    audience: expect.any(String),
    docs: expect.stringContaining('#attestation'),
  });
});

describe.each(['off', 'header', 'meta', 'both'] as const)('mode %s', (attestation) => {
  let agent: TestAgent;
  beforeAll(async () => {
    ({ agent } = await connected(world, mcp, { attestation }));
  });

  test('the attestation is in the configured places only', async () => {
    const answer = await expectStatus(200, agent.act(SEARCH));
    const { headers, params } = seenCall();
    const tokens = [headers['x-svc-attestation'], params._meta['ai.svc/attestation']];
    expect(tokens.map((token) => typeof token)).toEqual([
      attestation === 'header' || attestation === 'both' ? 'string' : 'undefined',
      attestation === 'meta' || attestation === 'both' ? 'string' : 'undefined',
    ]);
    for (const token of tokens.filter((one) => one !== undefined)) {
      const payload = await verified(token as string);
      expect(payload.exp! - payload.iat!).toBe(120);
      expect(payload).toEqual({
        iss: world.running.broker.did,
        sub: `${world.running.broker.did}:agents:${agent.agentId}`,
        aud: mcp.url,
        iat: expect.any(Number),
        exp: expect.any(Number),
        jti: answer.body._meta.audit_id,
        agent: agent.agentId,
        scopes: Object.keys(SCOPES).sort(),
        scope: 'tools:search.read',
        tool: 'search_issues',
        session_id: null,
        trace_id: answer.headers.get('x-correlation-id'),
      });
    }
  });

  test('an agent can neither forge an attestation nor pass one on', async () => {
    const answer = await agent.act({
      ...SEARCH,
      headers: { 'X-Svc-Attestation': 'forged', 'x-svc-session': 'forged' },
      data: { _meta: { 'ai.svc/attestation': 'forged' } },
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body._meta.dropped_headers).toEqual(['x-svc-attestation', 'x-svc-session']);
    const { headers, params } = seenCall();
    expect(headers['x-svc-attestation']).not.toBe('forged');
    expect(params._meta['ai.svc/attestation']).not.toBe('forged');
    // In the arguments it is ordinary data, and is passed on.
    expect(params.arguments).toEqual({ _meta: { 'ai.svc/attestation': 'forged' } });
  });
});

test('the attestation of a held call says that a person approved it', async () => {
  const { agent, organisation } = await connected(world, mcp, { attestation: 'both' }, [
    { effect: 'require_approval' },
  ]);
  const held = await agent.act(callOf('write_issue', 'tools:write'));
  const id = held.body.approval_id;
  await organisation.ask('POST', `/owner/approvals/${id}/approve`);
  await agent.get(`/v1/approvals/${id}?wait=20`);
  const payload = await verified(String(seenCall().headers['x-svc-attestation']));
  expect(payload).toMatchObject({ approval: { approval_id: id, how: 'api', decided_at: expect.any(String) } });
  expect(JSON.stringify(payload)).not.toContain(organisation.owner.id);
});

test('a call covered by a standing approval is attested with that approval, and when and how it was given', async () => {
  const { agent, organisation } = await connected(world, mcp, { attestation: 'both' }, [
    { effect: 'require_approval' },
  ]);
  const call = callOf('write_issue', 'tools:write');
  const held = await agent.act(call);
  const until = new Date(Date.now() + 3600_000).toISOString();
  const path = `/owner/approvals/${held.body.approval_id}/approve`;
  await expectStatus(200, organisation.ask('POST', path, { standing: { count: 2, free: [], until } }));
  await agent.get(`/v1/approvals/${held.body.approval_id}?wait=20`);
  expect(await verified(String(seenCall().headers['x-svc-attestation']))).not.toHaveProperty('standing_approval');
  const [given] = (await organisation.ask('GET', '/owner/standing-approvals')).body.standing_approvals;
  mcp.seen = [];
  const answer = await agent.act(call);
  expect(answer.body._meta.standing_approval, answer.text).toEqual({ id: given.id, left: 1 });
  const { headers, params } = seenCall();
  for (const token of [headers['x-svc-attestation'], params._meta['ai.svc/attestation']]) {
    const payload = await verified(String(token));
    expect(payload).not.toHaveProperty('approval');
    expect(payload.standing_approval).toEqual({ id: given.id, decided_at: given.created_at, how: 'api' });
    expect(JSON.stringify(payload)).not.toContain(organisation.owner.id);
  }
});

test('a child’s attestation names its parent, and only scopes that the parent still has', async () => {
  const { agent: parent, organisation } = await connected(world, mcp, { attestation: 'both' });
  const scopes = ['tools:search.read', 'tools:drop'];
  const child = await childOf(world, organisation, parent, { grants: [{ platform: 'tools', scopes }] });
  await expectStatus(200, child.act(SEARCH));
  expect(await verified(String(seenCall().headers['x-svc-attestation']))).toMatchObject({
    agent: child.agentId,
    parent: { agent: parent.agentId, did: `${world.running.broker.did}:agents:${parent.agentId}` },
    scopes: ['tools:drop', 'tools:search.read'],
  });
  // When the parent loses a scope, so does the child, whatever its own grant says.
  const narrowed = { scopes: ['tools:search.read'] };
  const path = `/owner/agents/${parent.agentId}/grants/tools`;
  expect((await organisation.ask('POST', path, narrowed)).status).toBe(200);
  mcp.seen = [];
  expect((await child.act(SEARCH)).status).toBe(200);
  const { scopes: now } = await verified(String(seenCall().headers['x-svc-attestation']));
  expect(now).toEqual(['tools:search.read']);
});

test.each(['header', 'both'])('a server that accepts no token twice can be called: %s', async (attestation) => {
  const other = await startWorld();
  const taken: JWTPayload[] = [];
  other.upstream.answer = ({ headers }, response, body) => {
    const { id, method, params } = JSON.parse(body);
    const claims = decodeJwt(String(headers['x-svc-attestation']));
    const isTaken = taken.some(({ jti }) => jti === claims.jti);
    const isMeant = claims.tool === (method === 'tools/call' ? params.name : undefined);
    taken.push(claims);
    const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
    const results: Record<string, object> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } },
      'tools/list': params?.cursor ? { tools: [tool('other')] } : { tools: [tool('search_issues')], nextCursor: 'b' },
      'tools/call': { content: [] },
    };
    const isOld = headers['mcp-protocol-version'] !== '2026-07-28';
    const status = isTaken || !isMeant ? 403 : !isOld ? 400 : id === undefined ? 202 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(status === 200 ? JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }) : '{}');
  };
  const { agent } = await connected(other, { url: `${other.upstream.url}/mcp` }, { attestation });
  for (const time of ['first', 'second']) {
    const answer = await agent.act(SEARCH);
    expect([time, answer.status, answer.body.data], answer.text).toEqual([time, 200, { content: [] }]);
    expect(taken.at(-1)).toMatchObject({ jti: answer.body._meta.audit_id, tool: 'search_issues' });
  }
  // One refused request, two of a handshake, two pages requested twice, a call; then two pages and a call.
  expect(taken).toHaveLength(11);
});

test('an attestation is rejected by another server, after it has expired, and for any other use (MC-01, JW-23)', async () => {
  const { agent } = await connected(world, mcp, { attestation: 'header' });
  const answer = await agent.act(SEARCH);
  const token = String(seenCall().headers['x-svc-attestation']);
  await expect(verified(token, 'https://other.example/mcp')).rejects.toThrow('aud');
  const { jwks_uri, issuer } = await discovered();
  const keys = createRemoteJWKSet(new URL(jwks_uri));
  const late = { currentDate: new Date(Date.now() + 121_000) };
  await expect(jwtVerify(token, keys, { issuer, ...late })).rejects.toThrow('exp');
  await expect(jwtVerify(token, keys, { typ: 'svc-receipt+jwt' })).rejects.toThrow('typ');
  const receipt = (await agent.get(`/v1/audit/${answer.body._meta.audit_id}/receipt`)).body.receipt;
  await expect(verified(receipt)).rejects.toThrow();
  for (const path of ['/v1/agents/me', '/owner/me'])
    expect((await send(world.running.baseUrl + path, { headers: { authorization: `Bearer ${token}` } })).status).toBe(
      401,
    );
});

test('the lab of another broker reports which headers and _meta members arrive', async () => {
  const lab = await startWorld();
  const host = new URL(lab.running.baseUrl).host;
  const caller = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: host });
  const scopes = { 'lab:try': ['tool *'] };
  const organisation = await caller.organisation();
  const manifest = { kind: 'mcp', base_url: `${lab.running.baseUrl}/lab/mcp`, attestation: 'both', scopes };
  await organisation.platform({ id: 'lab', manifest });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const agent = await organisation.agent({ policy, grants: { lab: { scopeList: ['lab:try'] } } });
  const who = { platform: 'lab', endpoint: '/tools/whoami', method: 'POST', scope: 'lab:try', data: {} };
  const answer = await expectStatus(200, agent.act(who));
  expect(answer.body.data.structuredContent).toMatchObject({
    verified: false,
    headers: expect.arrayContaining(['authorization', 'x-svc-attestation']),
    meta_keys: expect.arrayContaining(['ai.svc/attestation']),
  });
  const note = { ...who, endpoint: '/tools/write_note', data: { text: 'by way of the broker' } };
  expect((await agent.act(note)).body.data.structuredContent).toEqual({ number: 1, kept: 1 });
  expect((await lab.running.services.lab.open()).notes.all()[0]?.text).toBe('by way of the broker');
});
