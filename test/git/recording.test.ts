/** No effect without a record, and no complete answer without one; and the limits of an agent. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import type { TestAgent } from '../world/agent.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { commandList, PROBE, ZERO } from '../world/git-bytes.ts';
import { type GitWorld, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL } from '../world/world.ts';

const PUSH = `${commandList([`${ZERO} ${'a'.repeat(40)} refs/heads/agent/x\0 report-status`])}PACK`;

describe.each(ONE_STORE)(`recording git on %s${postgresNote}`, (store) => {
  let given: GitWorld;
  let agent: TestAgent;
  beforeAll(async () => {
    given = await startGitWorld(store);
    given.host.repository('acme/app');
    agent = await given.agent();
  });
  beforeEach(() => {
    given.host.answer = undefined;
    given.host.seen.length = 0;
  });
  let accept = async () => {};
  const refuse = async (which: 'all' | 'final') => {
    const end = await refuseAuditRows(given.world, which);
    accept = async () => {
      accept = async () => {};
      await end();
    };
  };
  afterEach(() => accept());
  const rows = () => listAuditRows(given.world.db, given.organisation.id, { limit: 100 });
  const ask = (service: string, body?: string, by = agent, headers: Record<string, string> = {}) =>
    fetch(
      `${given.world.running.baseUrl}/git/acme/app/${body === undefined ? `info/refs?service=${service}` : service}`,
      {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Basic ${btoa(`x:${by.token()}`)}`,
          ...(body !== undefined && { 'content-type': `application/x-${service}-request` }),
          ...headers,
        },
        ...(body !== undefined && { body }),
      },
    );

  test('a push that cannot be recorded is not sent', async () => {
    await refuse('all');
    const answer = await ask('git-receive-pack', PUSH);
    await accept();
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringMatching(/^agent-broker: audit_unavailable - .*nothing was sent/),
    ]);
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(given.host.seen).toEqual([]);
  });

  test('refs are withheld when their row cannot be stored', async () => {
    await refuse('final');
    const answer = await ask('git-upload-pack');
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('audit_unavailable')]);
    await accept();
  });

  test('a pack is not completed when its row cannot be stored', async () => {
    given.host.answer = async (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
      response.write('0008half');
      await refuse('final');
      response.end('0008rest');
    };
    // The connection is cut before or after the client has read the status.
    const read = ask('git-upload-pack', PROBE.repeat(2)).then((answer) => answer.text());
    await expect(read).rejects.toThrow(/fetch failed|terminated/);
  });

  test('an advertisement and a probe have one row each, final from the start', async () => {
    const before = (await rows()).length;
    let during: string[] = [];
    given.host.answer = () => {
      void rows().then((all) => {
        during = all.slice(0, all.length - before).map(({ state }) => state);
      });
      return false;
    };
    expect((await ask('git-receive-pack')).status).toBe(200);
    expect((await ask('git-receive-pack', PROBE)).status).toBe(200);
    const made = (await rows()).slice(0, (await rows()).length - before);
    expect(during.includes('intent')).toBe(false);
    expect(made.map(({ reason, method }) => [reason, method])).toEqual([
      ['probe', 'POST'],
      ['advertised', 'GET'],
    ]);
  });

  test('at most 16 requests of an agent are in flight', async () => {
    const go = Promise.withResolvers<void>();
    let asked = 0;
    const all = Promise.withResolvers<void>();
    given.host.answer = async (_, response) => {
      if (++asked === 16) all.resolve();
      await go.promise;
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' }).end(PROBE);
    };
    // The budget of this test world is a thousand times as large, because of its limit factor.
    const { budget } = given.world.running.services;
    const leases = Array.from({ length: 16_000 - 16 }, () => budget.lease({ family: agent.id, organisation: '' }));
    for (const lease of leases) expect(lease.begin()).toBe(true);
    const waiting = Array.from({ length: 16 }, () => ask('git-upload-pack'));
    await all.promise;
    const refused = await ask('git-upload-pack');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await refused.text()).toMatch(/^agent-broker: too_many_calls - acme\/app: /);
    const posted = await ask('git-upload-pack', PROBE);
    expect([posted.status, await posted.text()]).toEqual([429, expect.stringContaining('too_many_calls - acme/app')]);
    for (const row of (await rows()).slice(0, 2))
      expect(row).toMatchObject({ result: 'blocked', reason: 'too_many_calls' });
    expect((await rows()).slice(0, 2).map(({ path, method }) => [method, path])).toEqual([
      ['POST', '/git/acme/app/git-upload-pack'],
      ['GET', '/git/acme/app/info/refs'],
    ]);
    go.resolve();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
    for (const lease of leases) lease.release();
    await expect.poll(() => budget.held).toEqual({ calls: 0, bytes: 0 });
  });

  test('a code host with one token per person refuses git with consent_required', async () => {
    const organisation = await given.world.organisation();
    const manifest = {
      ...github,
      auth: { type: 'oauth2', client_id: 'x' },
      git_base_url: given.host.url,
      per_person: { enabled: true, asserted: ['slack'] },
    };
    await organisation.platform({ id: 'codehost', manifest });
    const grants = { codehost: { scopeList: ['codehost:contents.read'] } };
    const one = await organisation.agent({ rules: ALLOW_ALL, grants });
    const without = await runGit(['ls-remote', remoteOf(one, 'acme/app')]);
    expect(without.stderr).toMatch(/^remote: agent-broker: consent_required - acme\/app: /m);
    const caller = 'id slack:U1';
    const named = await ask('git-upload-pack', undefined, one, { 'x-svc-caller': caller });
    expect([named.status, await named.text()]).toEqual([412, expect.stringContaining('consent_required')]);
  });
});

test('more than 600 requests a minute are refused with an error line', async () => {
  const given = await startGitWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.005' });
  given.host.repository('acme/app');
  const agent = await given.agent();
  const statuses: number[] = [];
  let last = '';
  for (let i = 0; i < 4; i++) {
    const answer = await fetch(`${given.world.running.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Basic ${btoa(`x:${agent.token()}`)}` },
    });
    statuses.push(answer.status);
    last = `${answer.headers.get('retry-after')} ${answer.headers.get('ratelimit-policy')} ${await answer.text()}`;
  }
  expect(statuses).toEqual([200, 200, 200, 429]);
  expect(last).toMatch(/^\d+ "git";q=3;w=60 agent-broker: rate_limited - At most 3 requests a minute here/);
});
