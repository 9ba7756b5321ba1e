/** Live 429s, checked against the document: each has Retry-After (specification, Errors 2). */
import { describe } from 'vitest';
import { type Answer, send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { makeShow } from './shown.ts';

// With this factor every limit is one request a minute.
const world = givenWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.001' });
const organisation = shared(() => world.demoOrganisation());

const show = makeShow(() => world.running.baseUrl);
let addresses = 0;
/** Sends two requests from an address of their own; returns the second answer. */
async function twice(method: string, path: string, body?: string): Promise<Answer> {
  const from = `127.0.0.${10 + (++addresses % 200)}`;
  const headers = { 'content-type': 'application/json' };
  const ask = () => send(world.running.baseUrl + path, { method, headers, from, ...(body !== undefined && { body }) });
  await ask();
  return await ask();
}
async function twiceAs(method: string, path: string, body?: string): Promise<Answer> {
  const by = await organisation.agent({ grants: {} });
  const ask = () =>
    by.request(method, path, {
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });
  await ask();
  return await ask();
}

describe('rate limits', () => {
  show('POST /v1/actions → 429', () => twiceAs('POST', '/v1/actions', '{}'));
  show('GET /v1/agents/me → 429', () => twiceAs('GET', '/v1/agents/me'));
  for (const path of ['/v1/authzen/access', '/access/v1/evaluation', '/access/v1/evaluations'] as const)
    show(`POST ${path} → 429`, () => twiceAs('POST', path, '{}'));
  for (const path of ['/v1/trqp/authorization', '/v1/trqp/recognition'] as const) {
    show(`POST ${path} → 429`, () => twice('POST', path, '{}'));
    show(`POST ${path} → 429: an agent`, () => twiceAs('POST', path, '{}'));
  }
  show('POST /lab/mcp → 429', () => twice('POST', '/lab/mcp', '{}'));
  show('GET /v1/agents/me/pending-actions → 429', () => twiceAs('GET', '/v1/agents/me/pending-actions'));
  show('GET /v1/agent/permissions → 429', () => twiceAs('GET', '/v1/agent/permissions'));
  show('POST /v1/agents/self/diagnostics → 429', () => twiceAs('POST', '/v1/agents/self/diagnostics', '{}'));
  show('GET /v1/approvals/{id} → 429', () => twiceAs('GET', '/v1/approvals/x'));
  show('POST /v1/access-request → 429', () => twiceAs('POST', '/v1/access-request', '{}'));
  show('POST /v1/register → 429', () => twice('POST', '/v1/register', '{}'));
  show('POST /v1/agents/bind → 429', () => twice('POST', '/v1/agents/bind', '{}'));
  show('POST /v1/invites/bind → 429', () => twice('POST', '/v1/invites/bind', '{}'));
  show('POST /v1/agents/children → 429', () => twiceAs('POST', '/v1/agents/children', '{}'));
  show('POST /v1/authzen/access → 429', () => twiceAs('POST', '/v1/authzen/access', '{}'));
  show('POST /v1/trqp/authorization → 429', () => twice('POST', '/v1/trqp/authorization', '{}'));
  show('POST /v1/trqp/recognition → 429', () => twice('POST', '/v1/trqp/recognition', '{}'));
  show('POST /v1/bind-secret → 429', () => twice('POST', '/v1/bind-secret', '{}'));
  const ROOT = '/v1/approvals/passkeys';
  show('POST /v1/approvals/passkeys/register/begin → 429', () => twice('POST', `${ROOT}/register/begin`));
  show('POST /v1/approvals/passkeys/register/finish → 429', () => twice('POST', `${ROOT}/register/finish`, '{}'));
  show('POST /v1/approvals/passkeys/sign/begin → 429', () => twice('POST', `${ROOT}/sign/begin`, '{}'));
  show('POST /v1/approvals/passkeys/sign/finish → 429', () => twice('POST', `${ROOT}/sign/finish`, '{}'));
  show('GET /.well-known/did.json → 429', () => twice('GET', '/.well-known/did.json'));
  show('GET /agents/{agentId}/did.json → 429', () => twice('GET', '/agents/agt_aaaaaaaaaaaaaaaaaaaa/did.json'));
});
