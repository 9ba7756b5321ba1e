/** Agents without a key: tokens that their platform issues are accepted in place of signed ones, at every entry point. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { connectAgent } from '../../mcp/client/connect-agent.ts';
import { AgentKeyError } from '../../mcp/client/signer.ts';
import { profileSend } from '../../mcp/stdio/profile-send.ts';
import { type Answer, expectStatus, jsonPost, jsonRequest, makeKeyPair, send } from '../world/agent.ts';
import { commandHost, runCommand } from '../world/command.ts';
import { evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { makeSigner, startLyingProvider } from '../world/servers/lying-provider.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { ALLOW_ALL, fresh, READ, shared, startWorld } from '../world/world.ts';

const hosted = commandHost();

const SUBJECT = 'system:serviceaccount:agents:triage';

describe.each(ONE_STORE)(`workloads of agents on %s${postgresNote}`, (store) => {
  const issuer = shared(() => startLyingProvider());
  const other = shared(() => startLyingProvider());
  const world = shared(() =>
    // The issuer is also the identity provider of the owners.
    startWorld(store, issuer.settings, {
      before: async () => ({ allowPrivate: [issuer, other].map((one) => new URL(one.issuer).host) }),
    }),
  );
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ rules: ALLOW_ALL }));
  beforeEach(() => {
    // Earlier keys are too old to be used.
    world.clock.skewMs += 6 * MINUTE_MS;
    for (const one of [issuer, other]) {
      one.beHonest();
      one.clock = () => world.running.broker.clock();
      one.seen.length = 0;
    }
  });

  const path = () => `/owner/agents/${agent.agentId}/workload`;
  const set = (more: object = {}): Promise<Answer> =>
    organisation.ask('POST', path(), { issuer: issuer.issuer, subject: SUBJECT, ...more });
  const audience = async (more: object = {}): Promise<string> => {
    const answer = await expectStatus(200, set(more));
    return answer.body.audience;
  };
  const inSeconds = (seconds: number) => Math.floor(world.running.broker.clock() / 1000) + seconds;
  const tokenFor = async (aud: unknown, more: object = {}) =>
    await issuer.sign(issuer.honest({ aud, sub: SUBJECT, ...more }));
  const ask = (token: string, method: string, to: string, body?: unknown, headers: Record<string, string> = {}) =>
    send(world.running.baseUrl + to, jsonRequest(method, body, { authorization: `Bearer ${token}`, ...headers }));
  const act = (token: string) => ask(token, 'POST', '/v1/actions', READ);
  const me = (token: string) => ask(token, 'GET', '/v1/agents/me');
  const whole = async () => (await organisation.ask('GET', `/owner/agents/${agent.agentId}`)).body;

  test('a workload token is accepted wherever a signed one is, and the audit row says so', async () => {
    expect((await whole()).workload).toBeNull();
    const aud = await audience();
    expect(aud).toBe(`${world.running.baseUrl}/agents/${agent.agentId}`);
    const token = await tokenFor(aud);
    const called = await expectStatus(200, act(token));
    const { workload } = await whole();
    expect(workload).toMatchObject({ issuer: issuer.issuer, subject: SUBJECT, audience: aud });
    const { row } = await evidenceOf(world, agent, called.body._meta.audit_id);
    expect(JSON.parse(row.flags ?? '{}')).toMatchObject({ workload: workload.id });
    expect((await me(token)).body).toMatchObject({ agent_id: agent.agentId, agent_status: 'active' });
    expect((await ask(token, 'GET', '/v1/agent/permissions')).status).toBe(200);
    expect((await ask(token, 'GET', '/proxy/demo-main/items')).status).toBe(200);
    const inPlace = { 'x-svc-authorization': `Bearer ${token}`, authorization: 'Bearer of-the-client' };
    expect((await ask('', 'GET', '/proxy/demo-main/items', undefined, inPlace)).status).toBe(200);
    const git = await send(`${world.running.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Basic ${btoa(`agent:${token}`)}` },
    });
    // The agent was authenticated: the refusal is about a missing grant for a code host.
    expect([git.status, git.text]).toEqual([
      403,
      expect.stringMatching(/scope_not_granted|no_permission_record|not_connected/),
    ]);
    // On a route for agents and owners alike, too, although the issuer is also the owners' identity provider.
    await expectStatus(200, ask(token, 'GET', `/v1/audit/${called.body._meta.audit_id}/receipt`));
    // Tokens signed by the agent are still accepted.
    expect((await agent.act(READ)).status).toBe(200);
    await world.running.services.workloadUses.write();
    expect((await whole()).workload.last_used_at).toEqual(expect.any(String));
  });

  test('an agent with a workload can create children, which are halted with their parent', async () => {
    const token = await tokenFor(await audience());
    const made = await ask(token, 'POST', '/v1/agents/children', {
      grants: [{ platform: 'demo', scopes: [READ.scope] }],
    });
    expect(made.status, made.text).toBe(201);
    const { bearer_token: bearer } = made.body;
    expect((await act(bearer)).status).toBe(200);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    expect((await act(bearer)).status).toBe(403);
  });

  test.each<[string, (aud: string) => Promise<string>, RegExp]>([
    [
      'of another subject',
      (aud) => tokenFor(aud, { sub: 'system:serviceaccount:agents:other' }),
      /of the subject system:serviceaccount:agents:other, and the agent trusts another/,
    ],
    ['that has expired', (aud) => tokenFor(aud, { iat: inSeconds(-400), exp: inSeconds(-300) }), /has expired/],
    [
      'that is older than 12 hours',
      (aud) => tokenFor(aud, { iat: inSeconds(-50_000), exp: inSeconds(900) }),
      /older than 12 hours/,
    ],
    [
      'of another issuer, which is not asked for keys',
      async (aud) => other.sign(other.honest({ aud, sub: SUBJECT })),
      /names no agent that trusts its issuer/,
    ],
    [
      'signed by somebody else with the key id of the issuer',
      async (aud) =>
        issuer.sign(issuer.honest({ aud, sub: SUBJECT }), {}, { ...(await makeSigner()), kid: issuer.signer.kid }),
      /signature of the token does not match/,
    ],
    [
      'for an agent that is none',
      async () => tokenFor(`${world.running.baseUrl}/agents/agt_${'a'.repeat(20)}`),
      /names no agent/,
    ],
  ])('a token %s is refused', async (_what, make, says) => {
    const refused = await expectStatus(401, act(await make(await audience())));
    expect(refused.body.detail).toMatch(says);
    expect(other.seen).toEqual([]);
  });

  test('a token for the broker itself, for several audiences, or for another agent is refused', async () => {
    const aud = await audience();
    const neighbour = await organisation.agent({ rules: ALLOW_ALL });
    const ofNeighbour = `${world.running.baseUrl}/agents/${neighbour.agentId}`;
    expect((await me(await tokenFor(ofNeighbour))).status).toBe(401);
    // Not as a token that lacks a claim which agents set, or that is signed with the wrong algorithm.
    const nobodys = `${world.running.baseUrl}/agents/nobody`;
    for (const one of [world.running.baseUrl, [aud, 'https://other.example'], undefined, nobodys]) {
      const { status, body } = await me(await tokenFor(one));
      expect([status, body.error], String(one)).toEqual([401, 'invalid_token']);
      expect(body.detail, String(one)).toContain(`${world.running.baseUrl}/agents/agt_… with the id of the agent`);
    }
  });

  test('a suspended agent is halted, a revoked one permanently; refused tokens open no breaker', async () => {
    const aud = await audience();
    const token = await tokenFor(aud);
    for (let times = 0; times < 12; times++) await act(await tokenFor(aud, { sub: 'another' }));
    expect((await act(token)).status).toBe(200);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    const halted = await act(token);
    expect([halted.status, halted.body.reason]).toEqual([403, 'agent_suspended']);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    expect((await act(token)).status).toBe(200);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    expect((await act(token)).status).toBe(403);
    expect((await set()).status).toBe(409);
    await world.db.updateTable('agents').set({ status: 'deleted' }).where('id', '=', agent.id).execute();
    expectEnvelope(await me(token), 401, 'invalid_token');
  });

  test('a new workload replaces the old one, and without one only signed tokens are accepted; all changes are recorded', async () => {
    const aud = await audience();
    const token = await tokenFor(aud);
    expect((await me(token)).status).toBe(200);
    await audience({ subject: 'another' });
    expect((await me(token)).status).toBe(401);
    expect((await me(await tokenFor(aud, { sub: 'another' }))).status).toBe(200);
    expect((await organisation.ask('DELETE', path())).body).toEqual({ removed: true });
    expect((await me(await tokenFor(aud, { sub: 'another' }))).status).toBe(401);
    expect((await organisation.ask('DELETE', path())).status).toBe(404);
    expect((await whole()).workload).toBeNull();
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.slice(0, 3).map(({ reason }: { reason: string }) => reason)).toEqual([
      'workload_removed',
      'workload_set',
      'workload_set',
    ]);
    expect(rows[1]).toMatchObject({
      agent_id: agent.id,
      detail: 'another',
      flags: { change: { issuer: issuer.issuer, subject: 'another', jwks_uri: null } },
    });
  });

  test('an agent that waits for its key becomes active with a workload', async () => {
    const text = `agents: { waiting: { owner: '${organisation.owner.email}' } }`;
    expect((await organisation.ask('POST', '/owner/governance/apply', { text })).status).toBe(200);
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    const waiting = agents.find(({ name }: { name: string }) => name === 'waiting');
    const asked = { issuer: issuer.issuer, subject: SUBJECT };
    const answer = await expectStatus(200, organisation.ask('POST', `/owner/agents/${waiting.id}/workload`, asked));
    const token = await tokenFor(answer.body.audience);
    expect((await me(token)).body).toMatchObject({ agent_id: waiting.agent_id, agent_status: 'active' });
  });

  test('an agent without a key has a DID controlled by the broker, and can be given a key later', async () => {
    await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
    const asked = { issuer: issuer.issuer, subject: SUBJECT };
    const made = await organisation.ask('POST', '/owner/agents', { name: 'keyless', workload: asked });
    expect(made.status, made.text).toBe(200);
    const { agent_id: agentId, workload } = made.body;
    expect(made.body).toMatchObject({ status: 'active', agent_type: null, key_fingerprint: null });
    expectEnvelope(
      await organisation.ask('POST', '/owner/agents', { name: 'keyless', workload: asked }),
      409,
      'conflict',
    );
    const unknown = { name: 'other', workload: asked, grants: [{ platformId: 'demo', scopes: ['demo:nonsense'] }] };
    expectEnvelope(await organisation.ask('POST', '/owner/agents', unknown), 400, 'invalid_request');
    const token = await tokenFor(workload.audience);
    expect((await me(token)).body).toMatchObject({ agent_id: agentId, agent_type: null, agent_status: 'active' });
    const document = () => send(`${world.running.baseUrl}/agents/${agentId}/did.json`, {});
    const { did } = world.running.broker;
    expect((await document()).body).toMatchObject({ controller: did, authentication: [], assertionMethod: [] });
    expect((await document()).body).not.toHaveProperty('verificationMethod');
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows[0]).toMatchObject({
      reason: 'agent_created',
      detail: 'keyless',
      flags: { change: { subject: SUBJECT, workload: workload.id } },
    });

    const minted = await organisation.ask('POST', `/owner/agents/${agentId}/bootstrap-token`, {});
    const bind = { bootstrap_token: minted.body.bootstrap_token, public_key_pem: makeKeyPair().publicPem };
    await expectStatus(200, send(`${world.running.baseUrl}/v1/agents/bind`, jsonPost(bind)));
    expect((await me(token)).body).toMatchObject({ agent_type: 'key' });
    expect((await document()).body.verificationMethod).toHaveLength(1);
    await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: false });
  });

  test('while its issuer’s keys cannot be fetched the refusal says so', async () => {
    const aud = await audience();
    issuer.answers.set('/jwks', (_request, response) => void response.writeHead(500).end());
    const refused = await act(await tokenFor(aud));
    expect([refused.status, refused.body.detail]).toEqual([
      401,
      expect.stringContaining('cannot be fetched at the moment'),
    ]);
  });

  test('the owner API refuses a workload token, and a workload with a wildcard subject or an http issuer is refused', async () => {
    const token = await tokenFor(await audience());
    for (const to of ['/owner/agents', '/owner/governance', '/owner/me'])
      expect((await ask(token, 'GET', to)).status, to).toBe(401);
    expectEnvelope(await set({ subject: 'a*' }), 400, 'invalid_request');
    expectEnvelope(await set({ issuer: 'http://id.example' }), 400, 'invalid_request');
  });

  describe('with the commands of the agent’s side', () => {
    const folder = newFolder();
    const file = join(folder, 'token');
    const run = async (words: string[], env: Record<string, string> = {}) => await hosted(words, { cwd: folder, env });
    const asOwner = () => ({
      AGENT_BROKER_URL: world.running.baseUrl,
      AGENT_BROKER_OWNER_TOKEN: mintOwnerSession(world.running.broker, organisation.owner).token,
    });

    test('an agent without a key can be created, and calls with the token in its file, which is read each time', async () => {
      await organisation.ask('POST', '/owner/policies', { name: 'reads', rules: [{ effect: 'allow' }] });
      const words = ['agent', 'workload', 'create', 'keyless', '--issuer', issuer.issuer, '--subject', SUBJECT];
      const made = await run([...words, '--policy', 'reads', '--grant', `demo=${READ.scope}`, '--json'], asOwner());
      expect(made.code, made.stderr).toBe(0);
      const { agent_id: agentId, workload } = JSON.parse(made.stdout);
      const env = {
        AGENT_BROKER_URL: world.running.baseUrl,
        AGENT_BROKER_AGENT_ID: agentId,
        AGENT_BROKER_TOKEN_FILE: file,
      };
      const doctor = await run(['doctor'], env);
      expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining(`${file}, cannot be read (ENOENT)`)]);
      writeFileSync(file, `${await tokenFor(workload.audience)}\n`);
      const good = await run(['doctor'], env);
      expect(good.stdout, good.stderr).toContain(`the broker knows ${agentId} by this token`);
      expect((await run(['token'], env)).stdout).toBe(`${await readToken()}\n`);
      const client = connectAgent({ url: world.running.baseUrl, agentId, tokenFile: file });
      const read = { ...READ, method: 'GET' } as const;
      const outcome = await client.call(read);
      expect(outcome.kind, JSON.stringify(outcome)).toBe('answered');
      writeFileSync(file, 'no token');
      await expect(client.call(read)).rejects.toThrow(AgentKeyError);
      writeFileSync(file, await tokenFor(workload.audience));
      expect((await client.call(read)).kind).toBe('answered');
    });
    const readToken = async () => (await import('node:fs')).readFileSync(file, 'utf8').trim();

    test('when the issuer is refused no agent is created, and the name can be used again', async () => {
      const words = ['agent', 'workload', 'create', 'refused', '--subject', SUBJECT, '--issuer'];
      const refused = await run([...words, 'http://id.example'], asOwner());
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('must begin with "https://"')]);
      expect((await run([...words, issuer.issuer], asOwner())).stdout).toContain('has no key.');
      const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
      expect(agents.filter(({ name }: { name: string }) => name === 'refused')).toMatchObject([
        { status: 'active', agent_type: null, key_fingerprint: null },
      ]);
    });

    /** Starts a process of its own: `run` gives its output to another program. */
    const started = (words: string[], env: Record<string, string>) => runCommand(words, { cwd: folder, env });

    test('agent-broker run starts nothing without a token, and reports a token file that became invalid', async () => {
      const env = {
        AGENT_BROKER_URL: world.running.baseUrl,
        AGENT_BROKER_AGENT_ID: agent.agentId,
        AGENT_BROKER_TOKEN_FILE: join(folder, 'of-run'),
      };
      const curl =
        'curl -sS -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items"';
      const script = `${curl}; echo; echo gone > of-run; ${curl}; echo "\${AGENT_BROKER_TOKEN_FILE:-unset}"`;
      const none = await started(['run', '--', 'sh', '-c', 'echo started'], env);
      expect([none.code, none.stdout, none.stderr]).toEqual([
        1,
        '',
        expect.stringContaining('cannot be read (ENOENT)'),
      ]);
      writeFileSync(env.AGENT_BROKER_TOKEN_FILE, await tokenFor(await audience()));
      const ran = await started(['run', '--', 'sh', '-c', script], env);
      const [first, second, variable] = ran.stdout.trim().split('\n');
      expect(JSON.parse(first!), ran.stderr).toMatchObject({ method: 'GET' });
      expect(JSON.parse(second!)).toMatchObject({
        error: 'token_unreadable',
        detail: expect.stringContaining('Nothing was sent.'),
      });
      expect(variable).toBe('unset');
    });

    test('agent-broker mcp reports a missing token, and continues once there is one', async () => {
      const tokenFile = join(folder, 'of-mcp');
      const told: string[] = [];
      const profile = { url: world.running.baseUrl, agentId: agent.agentId, tokenFile };
      const request = profileSend(
        () => profile,
        (text) => void told.push(text),
      );
      const me = () => request({ method: 'GET', path: '/v1/agents/me' });
      await expect(me()).rejects.toMatchObject({ code: 'no_profile', maybeSent: false });
      expect(told).toEqual([expect.stringContaining('cannot be read (ENOENT)')]);
      writeFileSync(tokenFile, await tokenFor(await audience()));
      expect((await me()).status).toBe(200);
    });

    test('a workload can be set and removed, and a profile can name a token file beside it', async () => {
      const done = await run(
        ['agent', 'workload', 'set', agent.agentId, '--issuer', issuer.issuer, '--subject', SUBJECT],
        asOwner(),
      );
      expect(done.stdout, done.stderr).toContain(`AGENT_BROKER_AGENT_ID=${agent.agentId} AGENT_BROKER_TOKEN_FILE=FILE`);
      const aud = (await whole()).workload.audience;
      expect(done.stdout).toContain(aud);
      writeFileSync(file, await tokenFor(aud));
      const profile = join(folder, 'profile.json');
      const content = { url: world.running.baseUrl, agent_id: agent.agentId, token_file: 'token' };
      // The profile may be readable by others: it contains no secret.
      writeFileSync(profile, JSON.stringify(content), { mode: 0o644 });
      expect((await run(['doctor', '--profile', profile])).stdout).toContain('by this token');
      const both = { ...content, owner_id: agent.ownerId, private_key: 'x' };
      writeFileSync(profile, JSON.stringify(both), { mode: 0o600 });
      expect((await run(['doctor', '--profile', profile])).stdout).toContain('leave one of them out');
      const removed = await run(['agent', 'workload', 'remove', agent.agentId], asOwner());
      expect(removed.stdout).toContain('is refused');
      expect((await whole()).workload).toBeNull();
    });
  });
});
