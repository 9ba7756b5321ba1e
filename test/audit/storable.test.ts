/** Calls with texts of any content and length are recorded in the audit. */
import { beforeAll, describe, expect, test } from 'vitest';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const LONG = 'x'.repeat(500_000);

describe.each(STORES)(`calls with unusual texts are recorded, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    const { url } = world.upstream;
    const pulls = { 'host:write': ['POST /repos/**'] };
    await organisation.platform({ id: 'host', manifest: { scopes: pulls } });
    const graph = { kind: 'graphql', base_url: `${url}/graphql`, scopes: { 'graph:write': ['query items'] } };
    await organisation.platform({ id: 'graph', manifest: graph });
    await organisation.platform({ id: 'form', manifest: { body: 'form', scopes: { 'form:write': ['POST /items'] } } });
  });

  const pull = (more: object) => ({ platform: 'host', endpoint: '/repos/acme/app/pulls', data: { ...more } });
  const document = (query: string) => ({ platform: 'graph', endpoint: '/', data: { query } });
  const form = (data: object) => ({ platform: 'form', endpoint: '/items', data });

  test.each<[string, Record<string, unknown>, number, string]>([
    ['a branch with a NUL', pull({ head: 'evil:a\0b' }), 403, 'repo_not_allowed'],
    ['a repository with a NUL', pull({ head_repo: 'a\0b' }), 403, 'repo_not_allowed'],
    ['a branch of half a megabyte', pull({ head: `evil:${LONG}` }), 403, 'repo_not_allowed'],
    ['a branch that is an object', pull({ head: { toString: 1 } }), 403, 'repo_not_allowed'],
    ['a document with an escaped NUL', document('{ a "x\\u0000" }'), 400, 'invalid_request'],
    ['a document with half a pair', document('{ a "x\\ud800" }'), 400, 'invalid_request'],
    ['a long text in a document', document(`{ a "${LONG.slice(0, 60_000)}" }`), 400, 'invalid_request'],
    ['a name in a form with a NUL', form({ 'a\0b': {} }), 400, 'invalid_request'],
    ['a long name in a form', form({ [LONG]: {} }), 400, 'invalid_request'],
  ])('%s', async (_what, call, status, reason) => {
    const constraints = JSON.stringify({ repos: ['acme/*'] });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const agent = await organisation.agent({
      policy,
      grants: {
        host: { scopeList: ['host:write'], constraints },
        graph: { scopeList: ['graph:write'] },
        form: { scopeList: ['form:write'] },
      },
    });
    const answer = await withoutCalls(world, () =>
      agent.act({ method: 'POST', scope: `${call.platform}:write`, ...call }),
    );
    expect([answer.status, answer.body.reason ?? answer.body.error], answer.text).toEqual([status, reason]);
    expect(answer.text.length).toBeLessThan(4_000);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row.reason).toBe(reason);
    expect(row.detail!.length).toBeLessThan(1_000);
    expect(await world.db.selectFrom('audit_rows').select('id').where('state', '=', 'intent').execute()).toEqual([]);
  });

  test('an approved call that is refused for a text with a NUL is settled', async () => {
    const policy = await organisation.policy([{ effect: 'require_approval' }]);
    const agent = await organisation.agent({ policy, grants: { host: { scopeList: ['host:write'] } } });
    const held = await agent.act({ method: 'POST', scope: 'host:write', ...pull({ head: 'evil:a\0b' }) });
    expect(held.status, held.text).toBe(202);
    const constraints = JSON.stringify({ repos: ['acme/*'] });
    await world.db.updateTable('grants').set({ constraints }).where('agent_id', '=', agent.id).execute();
    const path = `/v1/approvals/${held.body.approval_id}`;
    expect((await organisation.approve(held.body.approval_id)).status).toBe(200);
    const { body } = await agent.get(`${path}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', execution_error: expect.stringContaining('reaches beyond') });
    expect((await evidenceOf(world, agent, body.audit_id)).row.reason).toBe('repo_not_allowed');
  });
});
