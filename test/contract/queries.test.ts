/** Live answers of AuthZEN and TRQP, checked against the document. */
import { beforeAll, describe } from 'vitest';
import { jsonPost, send, type TestAgent } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { makeShow } from './shown.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeAll(() => organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true }));
const agent = shared(() => organisation.agent());
const other = shared(() => organisation.agent());
const held = shared(() => organisation.agent({ grants: { demo: { require_approval: 1 } } }));

const show = makeShow(() => world.running.baseUrl);
const headers = { 'x-request-id': 'r-1' };
const by = (who: TestAgent, path: string, body: unknown) => who.post(path, body, headers);
const bare = (path: string, body: unknown) => send(world.running.baseUrl + path, jsonPost(body, headers));
const LARGE = { filling: 'x'.repeat(300 * 1024) };

describe('AuthZEN', () => {
  const about = (of: TestAgent) => ({
    subject: { type: 'agent', id: of.id },
    action: { name: 'demo:read' },
    resource: { type: 'platform', id: 'demo' },
  });
  for (const path of ['/v1/authzen/access', '/access/v1/evaluation', '/access/v1/evaluations'] as const) {
    show(`POST ${path} → 200`, () => by(agent, path, about(agent)));
    show(`POST ${path} → 200: held`, () => by(held, path, about(held)));
    show(`POST ${path} → 200: asked by an owner`, () => organisation.ask('POST', path, about(other)));
    show(`POST ${path} → 400: no subject`, () => by(agent, path, {}));
    show(`POST ${path} → 401: no bearer`, () => bare(path, about(agent)));
    show(`POST ${path} → 401: another agent`, () => by(agent, path, about(other)));
    show(`POST ${path} → 413`, () => by(agent, path, LARGE));
  }
  show('POST /access/v1/evaluations → 200: several evaluations', () =>
    by(agent, '/access/v1/evaluations', { ...about(agent), evaluations: [{}, { subject: 5 }, about(other)] }),
  );
  const CONFIGURATION = '/.well-known/authzen-configuration';
  show(`GET ${CONFIGURATION} → 200`, () => send(world.running.baseUrl + CONFIGURATION, {}));
});

describe('TRQP', () => {
  const about = (of: TestAgent, changes: object = {}) => ({
    entity_id: of.agentId,
    authority_id: world.running.broker.did,
    action: 'demo:read',
    resource: 'demo',
    ...changes,
  });
  for (const path of ['/v1/trqp/authorization', '/v1/trqp/recognition'] as const) {
    show(`POST ${path} → 200: without authentication`, () =>
      bare(path, about(agent, { context: { time: '2020-01-01T00:00:00Z' } })),
    );
    show(`POST ${path} → 200: not public`, () => bare(path, about(agent, { entity_id: 'agt_aaaaaaaaaaaaaaaaaaaa' })));
    show(`POST ${path} → 200: to the agent`, () => by(held, path, about(held)));
    show(`POST ${path} → 200: to its owner, of another authority`, () =>
      organisation.ask('POST', path, about(agent, { authority_id: 'did:web:elsewhere.example' })),
    );
    show(`POST ${path} → 400: no action`, () => bare(path, about(agent, { action: undefined })));
    show(`POST ${path} → 401: another agent`, () => by(agent, path, about(other)));
    show(`POST ${path} → 413`, () => bare(path, LARGE));
  }
});
