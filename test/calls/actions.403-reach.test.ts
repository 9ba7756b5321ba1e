import { describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectDenied, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, type Organisation, READ, shared } from '../world/world.ts';

describe.each(ONE_STORE)(
  `POST /v1/actions answers 403 for forbidden endpoints, recipients and repositories, on %s${postgresNote}`,
  (store) => {
    const world = givenWorld(store);
    const organisation = shared(() => world.demoOrganisation());

    const allowed = (more: Parameters<Organisation['agent']>[0] = {}) =>
      organisation.policy(ALLOW_ALL).then((policy) => organisation.agent({ policy, ...more }));

    const denied = (agent: TestAgent, request: Record<string, unknown>, reason: string) =>
      expectDenied(world, agent, request, reason);

    const passes = (agent: TestAgent, request: Record<string, unknown> = READ) => expectStatus(200, agent.act(request));

    test.each([
      ['PA-18 another method', { method: 'DELETE', endpoint: '/items/1' }],
      ['PA-11 another case of letters', { endpoint: '/Items' }],
      ['PA-12 a trailing slash', { endpoint: '/items/' }],
      ['an endpoint in no rule', { endpoint: '/elsewhere' }],
      ['a segment more', { endpoint: '/items/1/2' }],
    ])('endpoint_scope_mismatch: %s', async (_name, more) => {
      const agent = await allowed();
      await denied(agent, { ...READ, ...more }, 'endpoint_scope_mismatch');
      await passes(agent);
    });

    test.each<[string, Record<string, unknown>, number]>([
      ['GQ-01 a mutation under the scope of reads', { query: 'mutation { deleteAll }' }, 403],
      ['GQ-03 a mutation after comments', { query: '#query\n\ufeff mutation{ deleteAll } #{a}' }, 403],
      ['GQ-06 a persisted query', { extensions: { persistedQuery: { sha256Hash: 'x' } } }, 403],
      ['GQ-06 a stored document', { doc_id: '1' }, 403],
      ['GQ-08 a subscription', { query: 'subscription { items { id } }' }, 403],
      ['GQ-08 an incremental answer', { query: '{ items { ... @defer { id } } }' }, 403],
      ['GQ-09 a mutation hidden as a field of Query', { query: '{ items { id } deleteAll }' }, 403],
      ['GQ-03 no document', { query: '{' }, 400],
      ['GQ-04 a batch', { '0': { query: '{ items { id } }' } }, 400],
      [
        'GQ-05 21 aliases',
        { query: `{ ${Array.from({ length: 21 }, (_, i) => `a${i}: items { id }`).join(' ')} }` },
        400,
      ],
      [
        'a query with the word mutation in it (counter-example)',
        { query: '{ items(text: """mutation { deleteAll }""") { id } }' },
        200,
      ],
    ])('%s', async (_name, data, status) => {
      const manifest = {
        kind: 'graphql',
        base_url: `${world.upstream.url}/graphql`,
        scopes: { 'gql:read': ['query items'], 'gql:write': ['mutation createItem'] },
      };
      await organisation.platform({ id: `gql-${status}`, manifest, secret: null });
      const connection_id = await organisation.connection(`gql-${status}`, { isDefault: false });
      const agent = await allowed({
        grants: { [`gql-${status}`]: { connection_id, scopeList: ['gql:read', 'gql:write'] } },
      });
      const call = { platform: `gql-${status}`, endpoint: '/', method: 'POST', scope: 'gql:read', data };
      if (status === 403) await denied(agent, call, 'endpoint_scope_mismatch');
      else if (status === 200) await passes(agent, call);
      else {
        const answer = await withoutCalls(world, () => agent.act(call));
        expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request']);
        await evidenceOf(world, agent, auditIdOf(answer));
      }
    });

    test('recipient_not_allowed names the recipient in the answer and in the row, but not in the receipt', async () => {
      const recipients = { 'POST /items': ['/to', '/cc/*'] };
      await organisation.platform({ id: 'mail', manifest: { recipients } });
      const constraints = JSON.stringify({ recipients: ['@acme.example', 'bob@partner.example'] });
      const agent = await allowed({ grants: { mail: { constraints } } });
      const call = { ...READ, platform: 'mail', method: 'POST', scope: 'demo:write' };
      const cc = ['Eve <eve@Evil.example>', 'bob@partner.example'];
      const answer = await denied(agent, { ...call, data: { to: 'ann@acme.example', cc } }, 'recipient_not_allowed');
      expect(answer.body.violating).toEqual(['eve@evil.example']);
      const { row, payload } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.parse(row.violating!)).toEqual(['eve@evil.example']);
      expect(JSON.stringify(payload)).not.toMatch(/evil|ann@|partner/);
      await passes(agent, { ...call, data: { to: 'ann@acme.example', cc: ['bob@partner.example'] } });
    });

    test('repo_not_allowed names the repository and the constraint', async () => {
      const scopes = { 'codehost:contents.read': ['GET /repos/**', 'GET /user', 'GET /search/code'] };
      await organisation.platform({ id: 'codehost', manifest: { scopes } });
      const agent = await allowed({
        grants: { codehost: { scopeList: Object.keys(scopes), constraints: JSON.stringify({ repos: ['acme/*'] }) } },
      });
      const call = { platform: 'codehost', method: 'GET', scope: 'codehost:contents.read' };
      const answer = await denied(agent, { ...call, endpoint: '/repos/other/app/contents/x' }, 'repo_not_allowed');
      expect(answer.body.violating).toEqual(['other/app']);
      expect(answer.body.constraint).toEqual({ kind: 'repos', reason: 'repo_not_allowed', violating: ['other/app'] });
      const { row } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.parse(row.violating!)).toEqual(['other/app']);
      const search = await denied(agent, { ...call, endpoint: '/search/code' }, 'repo_not_allowed');
      expect(search.body.violating).toEqual([]);
      await passes(agent, { ...call, endpoint: '/repos/ACME/app/contents/x' });
      await passes(agent, { ...call, endpoint: '/user' });
    });
  },
);
