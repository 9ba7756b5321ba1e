import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import type { Answer, TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope, expectReportHint, withoutCalls } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:any' };

describe.each(STORES)(`an endpoint that is not in normal form is a 400 on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    const scopes = { 'demo:any': ['GET /**', 'POST /**', 'DELETE /**'] };
    await organisation.platform({ manifest: { scopes } });
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { demo: { scopeList: ['demo:any'] } },
    });
  });
  beforeEach(() => world.forgive());

  /** A 400 with its words, its row and its receipt, and nothing sent. */
  async function refused(request: Parameters<TestAgent['act']>, code: string, words: string): Promise<Answer> {
    const answer = await withoutCalls(world, () => agent.act(...request));
    expectEnvelope(answer, 400, code);
    expect(answer.body.detail).toContain(words);
    expectReportHint(answer, code);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: code, correlation_id: answer.body.correlation_id });
    return answer;
  }

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
  });

  test('PA-16 an endpoint of 8,193 bytes; one of 8,192 passes', async () => {
    await refused([{ ...READ, endpoint: `/${'a'.repeat(8_192)}` }], 'invalid_request', 'endpoint');
    const longest = await agent.act({ ...READ, endpoint: `/${'a'.repeat(8_191)}` });
    expect(longest.status).toBe(200);
  });

  test('PA-22 whatever is asked: refused with no call, or sent byte for byte as it is on record', async () => {
    const characters = [...'./\\%25;?#@: \t\r\néAb'];
    const text = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map((found) => found.join(''));
    const endpoints = fc.oneof(
      text,
      text.map((rest) => `/items/${rest}`),
      text.map((rest) => `/${rest}`),
    );
    const { db } = world.running.broker.store;
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
        const row = await findAuditRow(db, organisation.id, auditIdOf(answer));
        expect(row!.path).toBe(endpoint.split('?')[0]);
      }),
      { numRuns: 150 },
    );
    expect(passed).toBeGreaterThan(5);
  });
});
