/** A command of `agent-broker run` that was refused requests the missing scope from within the run: the command has no key, and the sidecar signs. */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { startGitWorld } from '../world/git-world.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { GIT_ENVIRONMENT } from '../world/servers/git-host.ts';
import { ALLOW_ALL, givenWorld, type Organisation, shared } from '../world/world.ts';
import { profileOf, run, type Started, sh, startRun } from './run-world.ts';

const COMMAND = `'${process.execPath}' '${BIN}' request-access`;
const CURL = 'curl -sS -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY"';

/** Waits until the agent has requested access, and decides on the request. */
async function decide(organisation: Organisation, agent: TestAgent, verb: 'approve' | 'deny', body: object = {}) {
  const found = await vi.waitFor(
    async () => {
      const { access_requests } = (await organisation.ask('GET', '/owner/access-requests?status=pending')).body;
      const one = access_requests.find(({ agent: { agent_id: id } }: never) => id === agent.agentId);
      expect(one).toBeDefined();
      return one;
    },
    { timeout: 60_000, interval: 100 },
  );
  await expectStatus(200, organisation.ask('POST', `/owner/access-requests/${found.request_id}/${verb}`, body));
  return found;
}

describe('a command that was refused', { timeout: 180_000 }, () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const reader = (rules: readonly unknown[] = ALLOW_ALL) =>
    organisation.agent({ rules, grants: { demo: { scopeList: ['demo:read'] } } });
  const WRITE = `${CURL} -X POST -H "Content-Type: application/json" -d "{}" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items"`;

  test('gets instructions, requests the scope with curl, waits for the decision, and repeats its call', async () => {
    const agent = await reader();
    const started = startRun(
      profileOf(agent),
      sh(`${WRITE}; echo
        poll=$(${CURL} -H "Content-Type: application/json" -d '{"platform":"demo","scope":"demo:write","reason":"ticket 7"}' \\
          "$AGENT_BROKER_RUN_URL/v1/access-request" | sed 's/.*"poll_url":"\\([^"]*\\)".*/\\1/')
        ${CURL} "$AGENT_BROKER_RUN_URL$poll?wait=50"; echo
        ${CURL} "$AGENT_BROKER_RUN_URL/v1/agent/permissions"; echo
        ${WRITE}`),
    );
    const asked = await decide(organisation, agent, 'approve', { note: 'Only today.' });
    expect(asked).toMatchObject({ platform: 'demo', scope: 'demo:write', reason: 'ticket 7' });
    const ended = await started.ended;
    expect(ended.code, ended.stderr).toBe(0);
    const [refused = '', status = '', permissions = '', made = ''] = ended.stdout.split('\n');
    expect(JSON.parse(refused)).toMatchObject({
      error: 'scope_not_granted',
      detail:
        'the call needs the scope demo:write, which the grant does not include. An owner can grant it. Ask with POST /v1/access-request at AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer, or run: npx agent-broker request-access demo demo:write',
    });
    expect(JSON.parse(status)).toEqual({ status: 'approved', note: 'Only today.' });
    expect(JSON.parse(permissions).data.platforms[0].scopes).toEqual(['demo:read', 'demo:write']);
    expect(JSON.parse(made)).toMatchObject({ method: 'POST', target: '/v1/items' });
  });

  test('requests the scope with the command from the error message, which ends when an owner has decided', async () => {
    const agent = await reader();
    const started = startRun(profileOf(agent), sh(`${COMMAND} demo demo:write --reason "ticket 7" && ${WRITE}`));
    await decide(organisation, agent, 'approve', { note: 'Only today.' });
    const ended = await started.ended;
    expect(ended.code, ended.stderr).toBe(0);
    const [said, made = ''] = ended.stdout.split('\n');
    expect(said).toBe(
      'An owner granted demo:write on demo. Make the call again; if its connection is new, start the run again. They wrote: Only today.',
    );
    expect(JSON.parse(made)).toMatchObject({ method: 'POST' });
    const again = await run(profileOf(agent), sh(`${COMMAND} demo demo:write --json`));
    expect(JSON.parse(again.stdout)).toEqual({
      status: 'granted',
      detail: expect.stringMatching(/^No access request is needed/),
    });
  });

  test('the command reports all other results, also by its exit code, and also outside of a run', async () => {
    const agent = await reader();
    const profile = profileOf(agent);
    const pending = await run(profile, sh(`${COMMAND} demo demo:write --wait 0`));
    expect(pending).toMatchObject({ code: 1, stderr: '' });
    expect(pending.stdout).toMatch(/^The owners were asked for demo:write on demo, and have not decided yet\./);
    const other = await reader();
    const started = startRun(profile, sh(`${COMMAND} demo demo:write --profile '${profileOf(other)}'`));
    await decide(organisation, other, 'deny', { note: 'Never.' });
    expect(await started.ended).toMatchObject({
      code: 1,
      stdout: 'An owner denied demo:write on demo. Do not ask for it again. They wrote: Never.\n',
    });
    const impossible = await run(profile, sh(`${COMMAND} demo demo:nothing`));
    expect(impossible).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/No owner can grant this/),
    });
  });

  test('reads the answer to an approved read at the URL in the refusal', async () => {
    const agent = await reader([{ effect: 'require_approval' }]);
    const started = startRun(
      profileOf(agent),
      sh(`${CURL} -H "X-Svc-Wait: 0" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items/7" > refused; cat refused; echo
        id=$(sed 's/.*"approval_id":"\\([^"]*\\)".*/\\1/' refused)
        ${CURL} "$AGENT_BROKER_RUN_URL/v1/approvals/$id?wait=50"; echo; exec sleep 600`),
    );
    const refused = JSON.parse((await started.written(/\n/)).split('\n')[0] ?? '');
    const { approval_id: id } = refused;
    expect(refused.detail).toContain(
      `The answer will be at /v1/approvals/${id} of AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer;`,
    );
    await expectStatus(200, organisation.approve(id));
    const [, told = ''] = (await started.written(/\n.*\n/)).split('\n');
    expect(JSON.parse(told)).toMatchObject({ status: 'approved', result: { data: { target: '/v1/items/7' } } });
    started.child.kill('SIGTERM');
    await started.ended;
    // Another run of the same agent did not make that call, which may be for another person or use other connections.
    const other = await run(profileOf(agent), sh(`${CURL} "$AGENT_BROKER_RUN_URL/v1/approvals/${id}"`));
    expect(JSON.parse(other.stdout)).toMatchObject({ status: 404, error: 'not_found' });
    expect(other.stdout).toContain('No such address here');
  });

  describe('other API routes through the sidecar', () => {
    let started: Started;
    let [url, key] = ['', ''];
    beforeAll(async () => {
      started = startRun(
        profileOf(await reader()),
        sh('echo "$AGENT_BROKER_RUN_URL $AGENT_BROKER_RUN_KEY $AGENT_BROKER_RUN_SOCKET."; exec sleep 600'),
      );
      [, url = '', key = ''] = /^(\S+) (\S+) /.exec(await started.written(/\n/)) ?? [];
    });
    const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
      const shown = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = method === 'GET' ? undefined : '{"platform":"demo","scope":"demo:write"}';
      const answer = await fetch(`${url}${path}`, { method, headers: { ...shown, ...headers }, body: body ?? null });
      return { status: answer.status, text: await answer.text() };
    };
    const ID = '0190e5f0-0000-7000-8000-000000000000';

    test.each([
      ['POST', '/v1/actions'],
      ['POST', '/v1/agents/children'],
      ['POST', '/v1/access-request?x=1'],
      ['POST', '/v1/access-request/'],
      ['POST', '/v1//access-request'],
      ['GET', '/v1/access-request'],
      ['GET', '/v1/access-request/status/..%2f..%2fagents%2fme'],
      ['GET', '/v1/access-request/status/a/b'],
      ['GET', '/v1/agents/me'],
      ['GET', '/v1/agents/me/pending-actions'],
      ['GET', '/v1/agent/permissions?x=1'],
      ['POST', '/v1/agent/permissions'],
      ['GET', `/v1/approvals/${ID}`],
      ['GET', '/owner/access-requests'],
    ])('%s %s is not served, and the error lists what is', async (method, path) => {
      const { text } = await expectStatus(404, ask(method, path));
      expect(text).toContain('/proxy/demo-main; and POST /v1/access-request, GET /v1/access-request/status/<token>');
    });

    test('the served routes accept only the command, and only the sidecar signs', async () => {
      for (const headers of [
        { authorization: 'Bearer x' },
        { origin: 'http://127.0.0.1' },
        { 'sec-fetch-site': 'none' },
      ])
        for (const [method, path] of [
          ['POST', '/v1/access-request'],
          ['GET', '/v1/agent/permissions'],
        ] as const)
          expect((await ask(method, path, headers)).status).toBe(403);
      const own = { authorization: 'Bearer eyJ.eyJ.x', cookie: 'session=x', 'x-svc-authorization': 'Bearer x' };
      const { text } = await expectStatus(200, ask('GET', '/v1/agent/permissions', { ...own, 'x-api-key': key }));
      expect(text).not.toContain(key);
    });
  });
});

test('git prints where an owner can grant the scope, and how to request it', {
  timeout: scaledTimeout(60_000),
}, async () => {
  const given = await startGitWorld('sqlite');
  given.host.repository('acme/app');
  const agent = await given.agent({ scopes: ['codehost:contents.read'] });
  const started = startRun(
    profileOf(agent),
    sh(`git clone -q https://github.com/acme/app; cd app; git switch -q -c agent/x; git commit -q --allow-empty -m x
      git push -q origin agent/x; ${COMMAND} codehost codehost:contents.write; git push -q origin agent/x && echo pushed`),
    GIT_ENVIRONMENT,
  );
  await decide(given.organisation, agent, 'approve');
  const { stdout, stderr } = await started.ended;
  expect(stderr.replace(/\s+/g, ' ')).toContain(
    `remote: agent-broker: scope_not_granted - acme/app: this needs the scope codehost:contents.write, which the grant does not include. Ask an owner to grant it, at ${agent.baseUrl}/console/agents/${agent.agentId}, or run: npx agent-broker request-access codehost codehost:contents.write`,
  );
  expect(stdout).toMatch(/pushed\n$/);
});
