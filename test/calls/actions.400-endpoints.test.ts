import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, expectMalformed, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const ANY = { 'demo:any': ['GET /**', 'POST /**', 'DELETE /**'] };
const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:any' };

describe.each(ONE_STORE)(`an endpoint that is not in normal form is a 400 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { scopes: ANY } }));
  const agent = shared(() =>
    organisation.agent({ rules: ALLOW_ALL, grants: { demo: { scopeList: Object.keys(ANY) } } }),
  );
  beforeEach(() => world.forgive());

  const refused = (request: Parameters<TestAgent['act']>, code: string, words: string) =>
    expectMalformed(world, agent, request, code, words);

  test.each([
    ['PA-01', '/../admin'],
    ['PA-01', '/a/../../admin'],
    ['PA-01', '/.'],
    ['PA-01', '/./x'],
    ['PA-01', '/..;/x'],
    ['PA-02', '/%2e%2e/admin'],
    ['PA-02', '/.%2e/x'],
    ['PA-02', '/%2E%2e/x'],
    ['PA-02', '/..%2fadmin'],
    ['PA-02', '/..%5cadmin'],
    ['PA-03', '/%252e%252e/admin'],
    ['PA-03', '/%25252e%25252e/admin'],
    ['PA-04', '/a%2fb'],
    ['PA-05', '//evil.test/x'],
    ['PA-05', '///evil.test/x'],
    ['PA-05', '/\\evil.test/x'],
    ['PA-05', '\\\\evil.test\\x'],
    ['PA-06', 'https://evil.test/x'],
    ['PA-06', 'http:foo'],
    ['PA-06', 'HTTPS:evil.test/x'],
    ['PA-06', 'javascript:x'],
    ['PA-06', 'file:///etc/passwd'],
    ['PA-06', 'items'],
    ['PA-08', '/x\r\nHost: evil'],
    ['PA-08', '/x\ty'],
    ['PA-08', '/x y'],
    ['PA-08', ' /x'],
    ['PA-08', '/x '],
    ['PA-08', '/x%00y'],
    ['PA-08', '/x%0d%0aSet-Cookie:1'],
    ['PA-08', '/x\u2028y'],
    ['PA-09', '/x#frag'],
    ['PA-09', '/x?y#z'],
    ['PA-10', '/x?access_token=AAA'],
    ['PA-10', '/x?api_key=AAA'],
    ['PA-12', '/repos//a//b'],
    ['PA-13', '/x;jsessionid=1/../y'],
    ['PA-15', '/%zz'],
    ['PA-15', '/%'],
    ['PA-15', '/%u002e'],
    ['PA-16', `/${'a/'.repeat(2_000)}`],
  ])('%s the endpoint %j', async (_case, endpoint) => {
    await refused([{ ...READ, endpoint }], 'invalid_endpoint', 'endpoint');
    // Through /proxy, where a client can write the endpoint into the request line.
    if (!/^\/[\x21-\x7e]*$/.test(endpoint)) return;
    const answer = await withoutCalls(world, () => rawClient(() => agent)('GET', `/proxy/demo-main${endpoint}`));
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_endpoint']);
  });

  test('PA-16 an endpoint of 8,193 bytes is refused; one of 8,192 is sent', async () => {
    await refused([{ ...READ, endpoint: `/${'a'.repeat(8_192)}` }], 'invalid_request', 'endpoint');
    await expectStatus(200, agent.act({ ...READ, endpoint: `/${'a'.repeat(8_191)}` }));
  });

  test('PA-22 any endpoint is either refused without a call, or sent byte for byte as recorded', async () => {
    const characters = [...'./\\%25;?#@: \t\r\néAb'];
    const text = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map((found) => found.join(''));
    const endpoints = fc.oneof(
      text,
      text.map((rest) => `/items/${rest}`),
      text.map((rest) => `/${rest}`),
    );
    let passed = 0;
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(endpoints, async (endpoint) => {
        if (asked++ % 40 === 0) await world.forgive();
        world.upstream.seen.length = 0;
        const answer = await agent.act({ ...READ, endpoint });
        if (answer.status === 400) {
          expect(world.upstream.seen).toEqual([]);
          return;
        }
        passed++;
        expect(answer.status, `${JSON.stringify(endpoint)} ${answer.text}`).toBe(200);
        expect(world.upstream.seen.map(({ target }) => target)).toEqual([`/v1${endpoint}`]);
        const row = await findAuditRow(world.db, organisation.id, auditIdOf(answer));
        expect(row!.path).toBe(endpoint.split('?')[0]);
      }),
      { numRuns: 150 },
    );
    expect(passed).toBeGreaterThan(5);
  });
});
