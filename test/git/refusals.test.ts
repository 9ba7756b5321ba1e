/** Every refusal as a person sees it: in the output of git. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { Secret } from '../../broker/crypto/secret.ts';
import { github } from '../../broker/platforms/builtin/github.ts';
import { writeCredential } from '../../broker/token-source/access-token.ts';
import { makeKeyPair, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { clone, type GitRun, type GitWorld, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { hideTables } from '../world/servers/fault-proxy.ts';
import { git } from '../world/servers/git-host.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY } from '../world/world.ts';

const LISTING = ['ls-remote'];

describe.each(ONE_STORE)(`what git shows of a refusal on %s${postgresNote}`, (store) => {
  let given: GitWorld;
  let bare: string;
  beforeEach(() => {
    given.host.answer = undefined;
  });
  beforeAll(async () => {
    given = await startGitWorld(store, { GIT_MAX_REQUEST_BYTES: '1MiB' });
    bare = given.host.repository('acme/app');
  });

  const list = (agent: TestAgent, repository = 'acme/app') => runGit([...LISTING, remoteOf(agent, repository)]);
  const lineOf = ({ stderr }: GitRun) => /^remote: (.*)$/m.exec(stderr)?.[1];
  async function lastRow(agent: TestAgent) {
    const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 50 });
    return rows.find((row) => row.agent_public_id === agent.agentId);
  }
  /** Expects a failure with one line, whose reason is recorded. */
  async function expectLine(run: GitRun, agent: TestAgent, code: string, text: RegExp | string, reason = code) {
    expect(run.code, run.stderr).not.toBe(0);
    expect(run.stderr).not.toContain(CANARY);
    const line = lineOf(run);
    expect(line, run.stderr).toContain(`agent-broker: ${code} - `);
    expect(line).toMatch(text);
    const row = await lastRow(agent);
    expect(row, run.stderr).toMatchObject({ reason, state: 'final' });
    await evidenceOf(given.world, agent, row!.id);
  }

  test('a repository that is not listed is refused', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/other', 'tools/*'] } });
    const run = await list(agent, 'acme/app.git');
    await expectLine(run, agent, 'repo_not_allowed', /- acme\/app is not in the agent's allowed repositories$/);
    expect((await lastRow(agent))?.violating).toBe('["acme/app"]');
  });

  test('a child is refused what its parent is', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/app'] } });
    const { body } = await agent.post('/v1/agents/children', {
      name: 'helper',
      ttl_seconds: 600,
      grants: [{ platform: 'codehost', scopes: ['codehost:contents.read'] }],
    });
    const url = (name: string) =>
      `${given.world.running.baseUrl.replace('//', `//x:${body.bearer_token}@`)}/git/${name}`;
    expect((await runGit(['ls-remote', url('acme/app')])).stdout).toContain('refs/heads/main');
    expect(lineOf(await runGit(['ls-remote', url('acme/other')]))).toContain('repo_not_allowed - acme/other is not in');
    expect(lineOf(await runGit(['push', url('acme/app')], { folder: await clone(agent, 'acme/app') }))).toContain(
      'scope_not_granted',
    );
  });

  test('repository names are case-insensitive, other names are refused', async () => {
    const agent = await given.agent({ constraints: { repos: ['ACME/App'] } });
    expect((await list(agent, 'acme/app')).code).toBe(0);
    for (const name of ['acme/app.git.git', 'acme/app.', 'acme/app2'])
      await expectLine(await list(agent, name), agent, 'repo_not_allowed', /not in the agent's allowed repositories/);
  });

  test('GT-05 a push of a read-only agent is refused', async () => {
    const agent = await given.agent({ scopes: ['codehost:contents.read'] });
    const folder = await clone(agent, 'acme/app');
    const run = await runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:agent/x'], { folder });
    await expectLine(
      run,
      agent,
      'scope_not_granted',
      /acme\/app: this needs the scope codehost:contents\.write, which the grant does not include\. Ask an owner/,
    );
  });

  test('a denial by a policy, and by a guardrail', async () => {
    const agent = await given.agent({ rules: [{ effect: 'deny' }] });
    await expectLine(await list(agent), agent, 'denied_by_policy', /denies this call/);
    const organisation = await given.world.organisation({
      guardrails: [{ name: 'no-git', effect: 'deny', endpoints: ['/git/**'] }],
    });
    await organisation.platform({ id: 'codehost', manifest: { ...github, git_base_url: given.host.url } });
    const other = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:contents.read'] } },
    });
    expect(lineOf(await list(other))).toMatch(/denied_by_guardrail - acme\/app: guardrail no-git denies this call/);
  });

  test('GT-07 requests that would need approval, by policy, by grant, and by the initial policy, are refused', async () => {
    for (const options of [{ rules: [{ effect: 'require_approval' }] }, { requireApproval: true }]) {
      const agent = await given.agent(options);
      await expectLine(await list(agent), agent, 'approval_required_unsupported_for_git', /Ask an owner for a policy/);
      expect(await lastRow(agent)).toMatchObject({ result: 'denied', approval_id: null });
    }
    const { DEFAULT_POLICY_RULES } = await import('../../broker/policy/default-policy.ts');
    const agent = await given.agent({ rules: DEFAULT_POLICY_RULES });
    const folder = await clone(agent, 'acme/app');
    const run = await runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:agent/x'], { folder });
    await expectLine(run, agent, 'approval_required_unsupported_for_git', /create refs\/heads\/agent\/x/);
    expect(run.stderr).toMatch(/\[remote rejected\] HEAD -> agent\/x \(approval_required_unsupported_for_git\)/);
  });

  test('a push with one forbidden ref is refused as a whole: every ref is reported as refused, and none is written', async () => {
    const agent = await given.agent({
      rules: [
        { effect: 'deny', when: 'has(request.git) && request.git.refs.exists(r, r.name == "refs/heads/main")' },
        { effect: 'allow' },
      ],
    });
    const folder = await clone(agent, 'acme/app');
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'x');
    const run = await runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:main', 'HEAD:agent/y'], { folder });
    await expectLine(run, agent, 'denied_by_policy', /acme\/app: policy/);
    for (const ref of ['main', 'agent/y'])
      expect(run.stderr).toContain(`[remote rejected] HEAD -> ${ref} (denied_by_policy)`);
    expect(git(bare, 'log', '--format=%s', 'main').trim()).toBe('first');
    expect(git(bare, 'branch', '--list', 'agent/y')).toBe('');
  });

  test('a push of refs that the grant does not allow is refused', async () => {
    const agent = await given.agent({ constraints: { refs: ['agent/*'], ref_changes: ['create'] } });
    const folder = await clone(agent, 'acme/app');
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'x');
    for (const ref of ['main', 'refs/tags/v1']) {
      const run = await runGit(['push', remoteOf(agent, 'acme/app'), `HEAD:${ref}`], { folder });
      await expectLine(run, agent, 'repo_not_allowed', /is not among the refs that the grant allows/);
    }
    const allowed = await runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:agent/new'], { folder });
    expect(allowed, allowed.stderr).toMatchObject({ code: 0 });
  });

  test('git and JGit get a report of a refused push, other clients an HTTP error', async () => {
    const agent = await given.agent({ rules: [{ effect: 'deny', methods: ['POST'] }, { effect: 'allow' }] });
    const zero = '0'.repeat(40);
    const command = `${'1'.repeat(40)} ${zero} refs/heads/main\0report-status side-band-64k`;
    const body = `${(command.length + 4).toString(16).padStart(4, '0')}${command}0000`;
    const push = (userAgent: string) =>
      fetch(`${given.world.running.baseUrl}/git/acme/app/git-receive-pack`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`x:${agent.token()}`).toString('base64')}`,
          'content-type': 'application/x-git-receive-pack-request',
          'user-agent': userAgent,
        },
        body,
      });
    const refused = await push('isomorphic-git/1');
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('denied_by_policy')]);
    // JGit drops its credentials after a 403 to a push, and then reports that authentication is not supported.
    for (const client of ['git/2.39.5', 'JGit/4.11.9.201909030838-r']) {
      const reported = await push(client);
      expect([reported.status, reported.headers.get('content-type')]).toEqual([
        200,
        'application/x-git-receive-pack-result',
      ]);
      expect(await reported.text()).toContain('ng refs/heads/main denied_by_policy');
    }
  });

  test('libgit2, dulwich and JGit get a refused list of refs as an error of the protocol, other clients an HTTP error', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/other'] } });
    const list = async (userAgent: string, token = agent.token()) => {
      const answer = await fetch(`${given.world.running.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, {
        headers: { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}`, 'user-agent': userAgent },
      });
      return [answer.status, answer.headers.get('content-type')?.split(';')[0], await answer.text()];
    };
    const line = "agent-broker: repo_not_allowed - acme/app is not in the agent's allowed repositories";
    for (const client of ['git/2.0 (libgit2 1.5.1)', 'git/dulwich/0.21.2', 'JGit/4.11.9.201909030838-r']) {
      const [status, type, text = ''] = await list(client);
      expect([status, type]).toEqual([200, 'application/x-git-upload-pack-advertisement']);
      const [, length = '', rest = ''] =
        /^001e# service=git-upload-pack\n0000([0-9a-f]{4})(ERR .*)$/s.exec(String(text)) ?? [];
      expect(rest.trimEnd()).toBe(`ERR ${line}`);
      expect(Number.parseInt(length, 16)).toBe(rest.length + 4);
      expect((await list(client, 'expired'))[0]).toBe(401);
    }
    for (const client of ['git/2.39.5', 'isomorphic-git/1', 'go-git/5.4'])
      expect(await list(client)).toEqual([403, 'text/plain', expect.stringContaining(line)]);
  });

  test('git shows why a push of too many refs, or a signed one, is refused', async () => {
    const agent = await given.agent();
    git(given.host.repository('acme/signs'), 'config', 'receive.certNonceSeed', 'seed');
    const folder = await clone(agent, 'acme/signs');
    const branches = Array.from({ length: 1_001 }, (_, i) => `HEAD:refs/heads/many/${i}`);
    const many = await runGit(['push', 'origin', ...branches], { folder });
    await expectLine(many, agent, 'invalid_request', /it changes more than 1000 refs; push fewer at a time/);
    const signer = join(newFolder(), 'sign');
    writeFileSync(signer, '#!/bin/sh\ncat > /dev/null\nprintf "\\n[GNUPG:] SIG_CREATED \\n" >&2\necho signature\n', {
      mode: 0o755,
    });
    const config = { 'gpg.program': signer, 'user.signingKey': 'A' };
    const signed = await runGit(['push', '--signed', 'origin', 'HEAD:signed'], { folder, config });
    await expectLine(signed, agent, 'invalid_request', /signed pushes are not supported; push without --signed/);
  });

  test('a refused probe: git gets 200 and the reason for its push; other clients get the HTTP error', async () => {
    const agent = await given.agent({ rules: [{ effect: 'deny', methods: ['POST'] }, { effect: 'allow' }] });
    const probe = async (userAgent: string, token = agent.token()) => {
      const answer = await fetch(`${given.world.running.baseUrl}/git/acme/app/git-receive-pack`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`x:${token}`)}`,
          'content-type': 'application/x-git-receive-pack-request',
          'user-agent': userAgent,
        },
        body: '0000',
      });
      return [answer.status, await answer.text()];
    };
    expect(await probe('git/2.39.5')).toEqual([200, '']);
    expect(await lastRow(agent)).toMatchObject({ result: 'denied', reason: 'denied_by_policy', method: 'POST' });
    expect(await probe('isomorphic-git/1')).toEqual([403, expect.stringMatching(/^agent-broker: denied_by_policy - /)]);
    // Only a 401 makes git ask for another password.
    expect(await probe('git/2.39.5', 'none')).toEqual([401, expect.stringMatching(/^agent-broker: invalid_token - /)]);
  });

  test('a halted agent is refused', async () => {
    const agent = await given.organisation.agent({
      keys: makeKeyPair(),
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:contents.read'] } },
    });
    await given.organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await expectLine(await list(agent), agent, 'agent_halted', /suspended/, 'agent_suspended');
  });

  test('a code host that is not connected, or has no git URL', async () => {
    const organisation = await given.world.organisation();
    await organisation.platform({
      id: 'codehost',
      secret: null,
      manifest: { ...github, git_base_url: given.host.url },
    });
    const grants = { codehost: { scopeList: ['codehost:contents.read'] } };
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants });
    expect(lineOf(await list(agent))).toMatch(/platform_not_connected - acme\/app: no code host is connected/);
    const without = await given.world.organisation();
    const { git_base_url: _, ...manifest } = github;
    await without.platform({ id: 'codehost', manifest });
    const another = await without.agent({ rules: ALLOW_ALL, grants });
    expect(lineOf(await list(another))).toContain('platform_not_connected');
  });

  test('GT-13 GT-15 a code host that refuses the credential, does not know the repository, redirects, misbehaves or is unavailable', async () => {
    const agent = await given.agent();
    const answers: [number, Record<string, string>, string, RegExp, string][] = [
      [401, { 'content-type': 'text/html' }, 'upstream_auth_failed', /An owner has to/, 'platform_reauth_needed'],
      // The credential in a binary answer: none of it is passed on.
      [401, {}, 'upstream_auth_failed', /An owner has to/, 'platform_reauth_needed'],
      [
        403,
        {},
        'upstream_auth_failed',
        /\(403\)\. It may lack the permission, or the repository is archived\. Ask/,
        'upstream_auth_failed',
      ],
      [302, { location: 'https://elsewhere.example/' }, 'upstream_unreachable', /redirects/, 'upstream_unreachable'],
      [200, { 'content-type': 'text/html' }, 'upstream_unreachable', /not a git response/, 'upstream_unreachable'],
      [503, {}, 'upstream_unreachable', /It answered 503/, 'upstream_unreachable'],
    ];
    for (const [status, headers, code, text, reason] of answers) {
      given.host.answer = (_, response) => response.writeHead(status, headers).end(`<b>${CANARY}</b>`);
      await expectLine(await list(agent), agent, code, text, reason);
      given.host.answer = undefined;
    }
    const unknown = await list(agent, 'acme/none');
    expect(unknown.stderr).toMatch(/remote: agent-broker: not_found - acme\/none does not exist at the code host/);
    expect(await lastRow(agent)).toMatchObject({ reason: 'upstream_not_found', upstream_status: 404 });
    given.host.answer = (request) => request.socket.destroy();
    await expectLine(await list(agent), agent, 'upstream_unreachable', /closed before the response was complete/);
    given.host.answer = undefined;
  });

  test('a code host that refuses a token that was just issued', async () => {
    const organisation = await given.world.organisation();
    const token = { token: new Secret(CANARY), id: uuidv4(), issuedAt: Date.now() };
    const life = { refreshAt: null, expiresAt: null, refreshable: false, lapsed: false };
    await organisation.platform({
      id: 'codehost',
      secret: writeCredential({ ...token, ...life }),
      manifest: { ...github, git_base_url: given.host.url },
    });
    const agent = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:contents.read'] } },
    });
    expect((await list(agent)).code).toBe(0);
    given.host.answer = (_, response) => response.writeHead(401, { 'content-type': 'text/plain' }).end('not yet');
    for (const _ of [1, 2, 3])
      expect(lineOf(await list(agent))).toContain('upstream_auth_failed - acme/app: the code host');
  });

  test('a connection marked for reauthentication is active again after a successful request', async () => {
    const agent = await given.agent();
    const statuses = async () => {
      const { body } = await given.organisation.ask('GET', '/owner/connections');
      return body.connections.map(({ status }: { status: string }) => status);
    };
    given.host.answer = (_, response) => response.writeHead(401, { 'content-type': 'text/plain' }).end('no');
    await list(agent);
    expect(await statuses()).toEqual(['reauth_needed']);
    given.host.answer = undefined;
    expect((await list(agent)).code).toBe(0);
    expect(await statuses()).toEqual(['active']);
  });

  test('a request that is too large is refused, and nothing of it is sent', async () => {
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/app');
    writeFileSync(`${folder}/random.bin`, randomBytes(3 * 1024 * 1024));
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', 'large');
    for (const postBuffer of ['65536', '16777216']) {
      const before = given.host.seen.filter(({ headers }) => headers['content-length'] !== '4').length;
      const config = { 'http.postBuffer': postBuffer };
      const run = await runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:agent/large'], { folder, config });
      expect(lineOf(run)).toContain('agent-broker: git_request_too_large - acme/app: The request is larger than 1 MiB');
      expect(run.stderr).toContain('! [remote rejected] HEAD -> agent/large (git_request_too_large)');
      expect(run.code).toBe(1);
      // Only the advertisement.
      expect(given.host.seen.filter(({ headers }) => headers['content-length'] !== '4').length).toBe(before + 1);
      expect(await lastRow(agent)).toMatchObject({ reason: 'git_request_too_large', result: 'errored' });
    }
    expect(given.world.running.services.gitBodies.held).toEqual({ memory: 0, files: 0 });
  });

  describe('changes after the advertisement', () => {
    const changed = (change: (agent: TestAgent) => Promise<unknown>) => (agent: TestAgent) => {
      given.host.answer = async () => {
        given.host.answer = undefined;
        await change(agent);
        return false;
      };
    };
    let release = () => {};
    const busy = async ({ id }: TestAgent) => {
      const lease = given.world.running.services.budget.lease({ family: id, organisation: '' });
      lease.begin();
      lease.count(Number.MAX_SAFE_INTEGER / 2);
      release = () => lease.release();
    };
    const away = async () => {
      given.host.answer = (request) => request.socket.destroy();
    };
    test.each([
      [
        'a halt',
        'agent_halted',
        changed(({ id }) => given.organisation.ask('POST', `/owner/agents/${id}/suspend`, { reason: 'odd' })),
      ],
      ['too many calls (429)', 'too_many_calls', changed(busy)],
      ['a code host that is unavailable (502)', 'upstream_unreachable', changed(away)],
    ])('%s, for a fetch and for a push', async (_, code, prepare) => {
      const [reader, writer] = [await given.agent(), await given.agent()];
      const folder = await clone(writer, 'acme/app');
      git(folder, 'commit', '-qm', 'more', '--allow-empty');
      prepare(reader);
      const fetched = await runGit(['clone', '-q', remoteOf(reader, 'acme/app'), 'new']);
      release();
      expect(fetched.code).not.toBe(0);
      expect(fetched.stderr).toContain(`fatal: remote error: agent-broker: ${code} - acme/app: `);
      prepare(writer);
      const pushed = await runGit(['push', remoteOf(writer, 'acme/app'), 'HEAD:agent/after'], { folder });
      release();
      expect(pushed.code).not.toBe(0);
      expect(lineOf(pushed), pushed.stderr).toContain(`agent-broker: ${code} - acme/app: `);
      expect(pushed.stderr).toContain(`(${code})`);
      given.host.answer = undefined;
    });
  });

  test('a missing, expired and malformed token are refused, and a child’s token is accepted', async () => {
    const agent = await given.agent();
    const bareUrl = `${given.world.running.baseUrl}/git/acme/app`;
    expect((await runGit(['ls-remote', bareUrl])).stderr).toContain('could not read Username');
    const iat = Math.floor(Date.now() / 1000) - 3_600;
    const old = bareUrl.replace('//', `//x:${agent.token({ iat, exp: iat + 60 })}@`);
    const expired = await runGit(['ls-remote', old]);
    expect(lineOf(expired)).toMatch(/^agent-broker: token_expired - /);
    expect(expired.stderr).toContain('Authentication failed');
    const none = await runGit(['ls-remote', bareUrl.replace('//', '//x:nothing@')]);
    expect(lineOf(none)).toMatch(/^agent-broker: invalid_token - /);
    const child = await agent.post('/v1/agents/children', {
      name: 'helper',
      ttl_seconds: 600,
      grants: [{ platform: 'codehost', scopes: ['codehost:contents.read'] }],
    });
    expect(child.status, child.text).toBe(201);
    const childUrl = bareUrl.replace('//', `//x:${child.body.bearer_token}@`);
    expect((await runGit(['ls-remote', childUrl])).stdout).toContain('refs/heads/main');
  });

  test('the user name connection.<label> selects the connection', async () => {
    const agent = await given.agent();
    const listed = await runGit(['ls-remote', remoteOf(agent, 'acme/app', { user: 'connection.codehost-main' })]);
    expect(listed, listed.stderr).toMatchObject({ code: 0 });
    const run = await runGit(['ls-remote', remoteOf(agent, 'acme/app', { user: 'connection.other' })]);
    await expectLine(run, agent, 'no_permission_record', /no grant on platform codehost for this connection/);
  });
});

/** The same URL, where each POST waits for `prepare` first. */
async function beforePosts(remote: string, prepare: () => Promise<unknown>): Promise<string> {
  const { port } = new URL(remote);
  const server = createServer((client) => {
    const broker = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [
      [client, broker],
      [broker, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    broker.pipe(client);
    client.on('data', async (bytes) => {
      client.pause();
      if (bytes.toString('latin1').startsWith('POST ')) await prepare();
      broker.write(bytes);
      client.resume();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return remote.replace(`:${port}/`, `:${(server.address() as AddressInfo).port}/`);
}

describe('a store that fails after the advertisement (503)', () => {
  let given: GitWorld;
  let agent: TestAgent;
  let folder: string;
  let bare: string;
  beforeAll(async () => {
    given = await startGitWorld('sqlite');
    bare = given.host.repository('acme/app');
    agent = await given.agent();
    folder = await clone(agent, 'acme/app');
    writeFileSync(join(folder, 'random.bin'), randomBytes(200_000));
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', 'more');
  });

  test.each([
    ['is unavailable', 'store_unavailable - The store is unavailable', () => hideTables(given.world.db)],
    ['takes no rows', 'audit_unavailable - The decision could not', () => refuseAuditRows(given.world)],
  ])('it %s: a fetch, and a short and a long push report it', async (_, said, fail) => {
    let failing: Promise<() => Promise<void>> | undefined;
    const remote = await beforePosts(remoteOf(agent, 'acme/app'), () => {
      failing ??= fail();
      return failing;
    });
    const repair = async () => {
      await (await failing)?.();
      failing = undefined;
    };
    const fetched = await runGit(['clone', '-q', remote, 'new']);
    await repair();
    expect(fetched.code).not.toBe(0);
    expect(fetched.stderr).toContain(`fatal: remote error: agent-broker: ${said}`);
    for (const postBuffer of ['1048576', '65536']) {
      const pushed = await runGit(['push', remote, 'HEAD:agent/x'], {
        folder,
        config: { 'http.postBuffer': postBuffer },
      });
      await repair();
      expect(pushed.code).not.toBe(0);
      expect(pushed.stderr).toContain(`remote: agent-broker: ${said}`);
    }
    expect(git(bare, 'branch', '--list', 'agent/x')).toBe('');
  });

  test('it is unavailable from the beginning: a listing reports it', async () => {
    const show = await hideTables(given.world.db);
    const { stderr } = await runGit(['ls-remote', remoteOf(agent, 'acme/app')]);
    await show();
    expect(stderr).toContain('remote: agent-broker: store_unavailable - The store is unavailable. Retry shortly.');
  });
});
