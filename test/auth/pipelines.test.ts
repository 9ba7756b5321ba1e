/** Pipelines: planning and applying governance files, and nothing else, with tokens that the job's own platform issues. */

import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { exportJWK } from 'jose';
import Provider from 'oidc-provider';
import { beforeEach, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { OWNER_ROUTES } from '../../broker/http/owner-routes.ts';
import { type Answer, expectStatus, jsonRequest, send } from '../world/agent.ts';
import { commandHost } from '../world/command.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { newRsaPair } from '../world/rsa.ts';
import { makeSigner, startLyingProvider } from '../world/servers/lying-provider.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, type Organisation, shared, startWorld } from '../world/world.ts';

const hosted = commandHost();

const SUBJECT = 'repo:acme@12/governance@34:ref:refs/heads/main';
const FILE = 'policies:\n  careful: { rules: [{ effect: allow, methods: [GET] }] }\n';

describe.each(ONE_STORE)(`pipelines on %s${postgresNote}`, (store) => {
  const issuer = shared(() => startLyingProvider());
  const other = shared(() => startLyingProvider());
  const real = shared(async () => {
    const server = createServer((request, response) => answer(request, response));
    const port = await listenOnLoopback(server);
    const origin = `http://127.0.0.1:${port}`;
    const provider = new Provider(origin, {
      clients: [
        {
          client_id: 'ci',
          client_secret: 'secret-of-the-job',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        },
      ],
      features: {
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            scope: 'governance',
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
      // The broker's clock is moved ahead of the provider's in these tests.
      ttl: { ClientCredentials: 86_400 },
      jwks: { keys: [{ ...(await exportJWK(newRsaPair().privateKey)), use: 'sig', alg: 'RS256', kid: 'k1' }] },
    });
    const answer = provider.callback();
    return { issuer: origin };
  });
  const world = shared(() =>
    startWorld(store, {
      AGENT_BROKER_ALLOW_PRIVATE: [issuer, other, real].map((one) => new URL(one.issuer).host).join(),
    }),
  );
  const organisation = fresh(() => world.organisation());
  beforeEach(() => {
    // Earlier keys are too old to be used.
    world.clock.skewMs += 6 * MINUTE_MS;
    for (const one of [issuer, other]) {
      one.beHonest();
      one.clock = () => world.running.broker.clock();
      one.seen.length = 0;
    }
  });

  const add = async (more: object = {}, by: Organisation = organisation): Promise<Answer> =>
    await by.ask('POST', '/owner/pipelines', {
      name: 'main',
      role: 'admin',
      issuer: issuer.issuer,
      subject: SUBJECT,
      ...more,
    });
  const added = async (more: object = {}, by: Organisation = organisation) => {
    const answer = await expectStatus(201, add(more, by));
    return answer.body as { id: string; audience: string };
  };
  /** Returns seconds since the epoch, so many from now. */
  const inSeconds = (seconds: number) => Math.floor(world.running.broker.clock() / 1000) + seconds;
  const claims = (audience: unknown, more: object = {}) =>
    issuer.honest({ aud: audience, sub: SUBJECT, sha: '0a1b2c', actor: 'octocat', run_id: '77', ...more });
  const ask = async (token: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    await send(world.running.baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  const plan = (token: string) => ask(token, 'POST', '/owner/governance/plan', { text: FILE });
  const apply = (token: string) => ask(token, 'POST', '/owner/governance/apply', { text: FILE });
  const tokenFor = async (audience: unknown, more: object = {}) => await issuer.sign(claims(audience, more));
  const listed = async () => (await organisation.ask('GET', '/owner/pipelines')).body.pipelines;

  test('a pipeline with role admin plans, applies and exports; row and receipt name the job and its commit', async () => {
    const { id, audience } = await added();
    expect(audience).toBe(`${world.running.baseUrl}/pipelines/${id}`);
    expect((await listed())[0]).toMatchObject({ name: 'main', role: 'admin', subject: SUBJECT, last_used_at: null });
    const token = await tokenFor(audience);
    const planned = await plan(token);
    expect(planned.body.changes, planned.text).toContainEqual(
      expect.objectContaining({ action: 'create', kind: 'policy', name: 'careful' }),
    );
    await expectStatus(200, apply(await tokenFor([audience])));
    expect((await ask(token, 'GET', '/owner/governance')).body.text).toContain('careful');
    expect((await listed())[0].last_used_at).toEqual(expect.any(String));

    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows[0]).toMatchObject({
      reason: 'governance_applied',
      detail: `pipeline main, ${SUBJECT}, commit 0a1b2c, run 77, by octocat`,
      flags: { change: { by: id, how: 'pipeline' } },
    });
    const { receipt } = (await organisation.ask('GET', `/v1/audit/${rows[0].id}/receipt`)).body;
    expect((await verifyReceipt(world, receipt)).payload).toMatchObject({ change: { by: id, how: 'pipeline' } });
    const csv = (await organisation.ask('GET', '/owner/audit/export?format=csv')).text;
    expect(csv).toContain('the pipeline main');
    const { applies } = (await organisation.ask('GET', '/owner/governance/applies')).body;
    expect(applies[0]).toMatchObject({ made_by: { by: id, how: 'pipeline' }, change_count: 2 });
  });

  test('a pipeline with role viewer plans without secrets, and cannot apply', async () => {
    const { audience } = await added({ role: 'viewer' });
    const token = await tokenFor(audience);
    expect((await plan(token)).status).toBe(200);
    const refused = await apply(token);
    expectEnvelope(refused, 403, 'forbidden');
    expect(refused.body.detail).toContain('needs the role admin; yours is viewer');
    expect((await organisation.ask('GET', '/owner/policies')).text).not.toContain('careful');
  });

  test('a pipeline does not get the bootstrap token of an agent that it creates; an owner can make one then', async () => {
    const { audience } = await added();
    const text = `agents: { night triage: { owner: '${organisation.owner.email}' } }`;
    const applied = await expectStatus(200, ask(await tokenFor(audience), 'POST', '/owner/governance/apply', { text }));
    expect(applied.body.bootstrap_tokens).toEqual([]);
    expect(applied.body.warnings).toContainEqual(
      expect.stringMatching(/has no key yet.* agent bootstrap "night triage"\. /),
    );
    expect(applied.text).not.toContain('abt_');
    const [agent] = (await organisation.ask('GET', '/owner/agents')).body.agents;
    const made = await organisation.ask('POST', `/owner/agents/${agent.id}/bootstrap-token`, {});
    expect(made.body.bootstrap_token, made.text).toMatch(/^abt_/);
  });

  test.each<[string, (audience: string) => Promise<string>, RegExp]>([
    [
      'of another job, whose subject it is told',
      (audience) => tokenFor(audience, { sub: 'repo:acme/governance:pull_request' }),
      /of the subject repo:acme\/governance:pull_request, and the pipeline trusts another/,
    ],
    [
      'whose subject has another letter case',
      (audience) => tokenFor(audience, { sub: SUBJECT.toUpperCase() }),
      /trusts another/,
    ],
    ['without a subject', (audience) => tokenFor(audience, { sub: undefined }), /cannot be verified/],
    [
      'that has expired',
      (audience) => tokenFor(audience, { iat: inSeconds(-400), exp: inSeconds(-300) }),
      /has expired/,
    ],
    [
      'without an expiry',
      (audience) => tokenFor(audience, { exp: undefined }),
      /cannot be verified\. .* exp is missing/,
    ],
    [
      'that is older than 12 hours',
      (audience) => tokenFor(audience, { iat: inSeconds(-50_000), exp: inSeconds(900) }),
      /older than 12 hours/,
    ],
    [
      'of tomorrow',
      (audience) => tokenFor(audience, { iat: inSeconds(86_400), exp: inSeconds(90_000) }),
      /cannot be verified/,
    ],
    [
      'signed by somebody else with the key id of the issuer',
      async (audience) => issuer.sign(claims(audience), {}, { ...(await makeSigner()), kid: issuer.signer.kid }),
      /signature of the token does not match/,
    ],
    [
      'that is a logout token',
      (audience) => tokenFor(audience, { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
      /not one that identifies a caller/,
    ],
    [
      'of an agent’s type',
      async (audience) => issuer.sign(claims(audience), { typ: 'svc-owner+jwt' }),
      /not one that identifies a caller/,
    ],
    [
      'of another issuer, which is not asked for keys',
      async (audience) => other.sign(other.honest({ aud: audience, sub: SUBJECT })),
      /names no pipeline that trusts its issuer/,
    ],
    [
      'for a pipeline that is none',
      async () => tokenFor(`${world.running.baseUrl}/pipelines/${crypto.randomUUID()}`),
      /names no pipeline/,
    ],
    ['for no id', async () => tokenFor(`${world.running.baseUrl}/pipelines/main`), /names no pipeline/],
  ])('a token %s is refused', async (_what, make, says) => {
    const { audience } = await added();
    const token = await make(audience);
    const refused = await plan(token);
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer error="invalid_token"']);
    expect(refused.body.detail).toMatch(says);
    expect(other.seen).toEqual([]);
    expect((await listed())[0].last_used_at).toBeNull();
  });

  test('a token for the broker itself, for several audiences, or without an audience is refused', async () => {
    const { audience } = await added();
    for (const aud of [world.running.baseUrl, [audience, 'https://other.example'], undefined]) {
      const refused = await plan(await tokenFor(aud));
      expect([refused.status, refused.body.error], String(aud)).toEqual([401, 'invalid_token']);
      expect(refused.body.detail, String(aud)).toContain(
        `the address of the pipeline, ${world.running.baseUrl}/pipelines/…`,
      );
    }
    expect(issuer.seen).toEqual([]);
  });

  test('a pipeline is refused by every other route of the owner API, and by the routes of agents', async () => {
    const { audience } = await added();
    const token = await tokenFor(audience);
    const others = OWNER_ROUTES.filter(({ auth }) => auth === 'owner' || auth === 'owner_or_local');
    expect(others.length).toBeGreaterThan(100);
    for (const { method, path } of others) {
      const answer = await ask(
        token,
        method,
        path.replaceAll(/\{[^}]+\}/g, crypto.randomUUID()),
        method === 'GET' ? undefined : {},
      );
      expect([answer.status, answer.body?.detail], `${method} ${path}`).toEqual([
        401,
        'A pipeline plans, applies and exports governance files, and does nothing else.',
      ]);
    }
    for (const [method, path] of [
      ['POST', '/v1/actions'],
      ['GET', '/v1/agents/me'],
      ['POST', '/mcp'],
    ] as const)
      expect((await ask(token, method, path, method === 'GET' ? undefined : {})).status, path).toBe(401);
    const inCookie = await send(`${world.running.baseUrl}/owner/governance`, {
      headers: { cookie: `agent_broker_session=${token}` },
    });
    expect(inCookie.status).toBe(401);
  });

  test('a pipeline with the same subject in another organisation acts only there', async () => {
    const stranger = await world.organisation();
    const theirs = await added({}, stranger);
    const ours = await added();
    expect((await apply(await tokenFor(theirs.audience))).status).toBe(200);
    expect((await organisation.ask('GET', '/owner/policies')).text).not.toContain('careful');
    expect((await apply(await tokenFor(ours.audience))).status).toBe(200);
    expect((await organisation.ask('GET', '/owner/policies')).text).toContain('careful');
    expect((await stranger.ask('DELETE', `/owner/pipelines/${ours.id}`)).status).toBe(404);
  });

  test('a removed pipeline is refused at the next request; adding and removing are recorded in the audit', async () => {
    const { id, audience } = await added();
    const token = await tokenFor(audience);
    expect((await plan(token)).status).toBe(200);
    expect((await organisation.ask('DELETE', `/owner/pipelines/${id}`)).body).toEqual({ id, removed: true });
    expect((await plan(token)).status).toBe(401);
    expect((await organisation.ask('DELETE', `/owner/pipelines/${id}`)).status).toBe(404);
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows[0]).toMatchObject({ reason: 'pipeline_removed', detail: 'main', flags: { change: { pipeline: id } } });
    expect(rows[1]).toMatchObject({
      reason: 'pipeline_added',
      flags: { change: { pipeline: id, role: 'admin', issuer: issuer.issuer, subject: SUBJECT, jwks_uri: null } },
    });
  });

  test('while its issuer’s keys cannot be fetched a pipeline gets an explanation, and is accepted as soon as they can', async () => {
    const { audience } = await added();
    issuer.answers.set('/jwks', (_request, response) => void response.writeHead(500).end());
    const refused = await plan(await tokenFor(audience));
    expectEnvelope(refused, 502, 'identity_provider_failed');
    expect(refused.body.detail).toContain(issuer.issuer);
    issuer.beHonest();
    issuer.clock = () => world.running.broker.clock();
    world.clock.skewMs += MINUTE_MS;
    expect((await plan(await tokenFor(audience))).status).toBe(200);
  });

  test('the keys may be at an address that the issuer’s metadata does not name', async () => {
    const { audience } = await added({ issuer: 'https://kubernetes.default.svc', jwks_uri: `${issuer.issuer}/jwks` });
    const token = await tokenFor(audience, { iss: 'https://kubernetes.default.svc' });
    expect((await plan(token)).status).toBe(200);
  });

  test('a JWT access token of a real provider is accepted, by client credentials for the pipeline as its resource (RFC 8707)', async () => {
    const { audience } = await added({ issuer: real.issuer, subject: 'ci' });
    const granted = await send(`${real.issuer}/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa('ci:secret-of-the-job')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        resource: audience,
        scope: 'governance',
      }).toString(),
    });
    expect(granted.status, granted.text).toBe(200);
    await expectStatus(200, plan(granted.body.access_token));
  });

  test('in a restored store a pipeline is refused until the review ends, and listed in it', async () => {
    const { audience, id } = await added();
    const { broker } = world.running;
    const ended = {
      approvals: 0,
      access_requests: 0,
      registrations: 0,
      consents: 0,
      invites: 0,
      standing_approvals: 0,
    };
    const restored = JSON.stringify({ at: broker.clock(), madeAt: null, ended, noted: true });
    await broker.store.db.updateTable('organisations').set({ restored }).where('id', '=', organisation.id).execute();
    const refused = await plan(await tokenFor(audience));
    expect([refused.status, refused.body.detail]).toEqual([401, expect.stringContaining('end the review first')]);
    const { pipelines } = (await organisation.ask('GET', '/owner/restored')).body;
    expect(pipelines).toEqual([{ id, name: 'main', role: 'admin', issuer: issuer.issuer, subject: SUBJECT }]);
  });

  test.each<[string, object, RegExp]>([
    ['a wildcard', { subject: 'repo:acme/*' }, /compared literally/],
    ['a subject with a space', { subject: 'a b' }, /printable ASCII/],
    ['an issuer over plain http', { issuer: 'http://id.example' }, /must begin with/],
    ['a role that decides on calls', { role: 'approver' }, /role/],
    ['a name in capitals', { name: 'Main' }, /lower case/],
  ])('%s is refused', async (_what, more, says) => {
    const refused = await add(more);
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.text).toMatch(says);
  });

  test('a name can be used once, and only an admin adds or removes pipelines', async () => {
    const { id } = await added();
    expectEnvelope(await add(), 409, 'conflict');
    const approver = (await organisation.ask('POST', '/owner/owners', { email: 'bob@acme.example', role: 'approver' }))
      .body;
    const bob = { ...organisation.owner, ...approver };
    for (const [method, path] of [
      ['POST', '/owner/pipelines'],
      ['DELETE', `/owner/pipelines/${id}`],
    ] as const)
      expectEnvelope(await organisation.ask(method, path, method === 'POST' ? {} : undefined, bob), 403, 'forbidden');
    expect((await organisation.ask('GET', '/owner/pipelines', undefined, bob)).body.pipelines).toHaveLength(1);
  });

  describe('on the command line', () => {
    const folder = newFolder();
    const file = join(folder, 'governance.yaml');
    writeFileSync(file, FILE);
    /** A stand-in for GitHub's answer to a job that requests its token. */
    const github = shared(async () => {
      const asked: { audience: string | null; authorization: IncomingMessage['headers']['authorization'] }[] = [];
      const server = createServer(async (request, response) => {
        const audience = new URL(request.url!, 'http://localhost').searchParams.get('audience');
        asked.push({ audience, authorization: request.headers.authorization });
        const value = await tokenFor(audience);
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ value }));
      });
      const port = await listenOnLoopback(server);
      const url = `http://127.0.0.1:${port}/token?api-version=2.0`;
      return { asked, env: { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job' } };
    });
    const run = async (words: string[], env: Record<string, string> = {}) => await hosted(words, { cwd: folder, env });
    const asOwner = async () => ({
      AGENT_BROKER_URL: world.running.baseUrl,
      AGENT_BROKER_OWNER_TOKEN: mintOwnerSession(world.running.broker, organisation.owner).token,
    });

    test('a pipeline of GitHub is added, plans and applies with its job’s token, is listed and removed', async () => {
      const owner = await asOwner();
      const words = ['--issuer', issuer.issuer, '--subject', SUBJECT, '--role', 'admin'];
      const made = await run(['pipeline', 'add', 'main', ...words, '--json'], owner);
      expect(made.code, made.stderr).toBe(0);
      const { audience } = JSON.parse(made.stdout);

      const planned = await run(['plan', file, '--pipeline', audience], github.env);
      expect(planned.stdout, planned.stderr).toContain('+ policy careful');
      const check = async () => await run(['plan', file, '--check', '--pipeline', audience], github.env);
      const differing = await check();
      expect([planned.code, differing.code, differing.stdout]).toEqual([0, 1, planned.stdout]);
      const applied = await run(['apply', file], { ...github.env, AGENT_BROKER_PIPELINE: audience });
      expect(applied.stdout, applied.stderr).toContain('2 changes made.');
      expect(await check()).toMatchObject({ code: 0, stdout: 'Nothing would change.\n' });
      expect(github.asked.at(-1)).toEqual({ audience, authorization: 'Bearer of-the-job' });
      const exported = await run(['export', '--pipeline', audience], {
        AGENT_BROKER_OWNER_TOKEN: await tokenFor(audience),
      });
      expect(exported.stdout).toContain('careful');

      const list = await run(['pipeline', 'list'], owner);
      expect(list.stdout).toMatch(new RegExp(`^main {2}admin {2}${SUBJECT} .* used 20`));
      const removed = await run(['pipeline', 'remove', 'main'], owner);
      expect(removed.stdout).toContain('is removed');
      const refused = await run(['plan', file, '--pipeline', audience], github.env);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('names no pipeline')]);
    });

    test.each<[string[], string, string, RegExp]>([
      [
        ['--github', 'acme/governance', '--branch', 'main'],
        'https://token.actions.githubusercontent.com',
        'repo:acme/governance:ref:refs/heads/main',
        /id-token: write/,
      ],
      [
        ['--github', 'acme@12/governance@34', '--environment', 'production'],
        'https://token.actions.githubusercontent.com',
        'repo:acme@12/governance@34:environment:production',
        /id-token: write/,
      ],
      [
        ['--github', 'acme/governance', '--pull-requests'],
        'https://token.actions.githubusercontent.com',
        'repo:acme/governance:pull_request',
        /apply governance.yaml --pipeline http/,
      ],
      [
        ['--gitlab', 'acme/ops/governance', '--branch', 'main'],
        'https://gitlab.com',
        'project_path:acme/ops/governance:ref_type:branch:ref:main',
        /id_tokens:/,
      ],
    ])('the options %j set issuer and subject', async (words, wanted, subject, says) => {
      const made = await run(['pipeline', 'add', 'ci', '--role', 'admin', ...words], await asOwner());
      expect(made.stdout, made.stderr).toContain(`The pipeline ci may plan and apply: ${subject} of ${wanted}.`);
      expect(made.stdout).toMatch(says);
      expect((await listed())[0]).toMatchObject({ issuer: wanted, subject });
    });

    test.each<[string[], RegExp]>([
      [['--branch', 'main'], /one of --github, --gitlab and --issuer/],
      [['--github', 'a/b'], /one of --branch, --environment and --pull-requests/],
      [['--github', 'a/b', '--branch', 'main', '--pull-requests'], /one of --branch/],
      [['--gitlab', 'a/b'], /--branch/],
      [['--issuer', 'https://id.example'], /--subject/],
    ])('the options %j are refused, and the error says what is missing', async (words, says) => {
      const { code, stderr } = await run(['pipeline', 'add', 'ci', '--role', 'viewer', ...words], await asOwner());
      expect([code, stderr]).toEqual([1, expect.stringMatching(says)]);
    });

    test.each([
      ['--github', 'governance'],
      ['--github', 'https://github.com/acme/governance'],
      ['--gitlab', 'governance'],
    ])('%s %s is refused: no token could ever have that subject', async (option, value) => {
      const words = ['pipeline', 'add', 'ci', '--role', 'viewer', option, value, '--branch', 'main'];
      const { code, stderr } = await run(words, await asOwner());
      expect([code, stderr]).toEqual([2, expect.stringContaining(`${option} takes `)]);
    });

    test('a job without a token is told how to get one, and a token or address for something else is refused', async () => {
      const { audience } = await added();
      const without = await run(['plan', file, '--pipeline', audience]);
      expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('id-token: write')]);
      for (const token of [
        'no-token',
        await tokenFor('https://other.example'),
        await tokenFor([audience, 'https://other.example']),
      ]) {
        const other = await run(['plan', file, '--pipeline', audience], { AGENT_BROKER_OWNER_TOKEN: token });
        expect([other.code, other.stderr]).toEqual([1, expect.stringContaining(`is not issued for ${audience}`)]);
      }
      const wrong = await run(['plan', file, '--pipeline', world.running.baseUrl], github.env);
      expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('as "pipeline add" prints it')]);
      const elsewhere = await run(['plan', file, '--pipeline', audience, '--organisation', 'other'], github.env);
      expect([elsewhere.code, elsewhere.stderr]).toEqual([
        2,
        expect.stringContaining('--organisation changes nothing beside a pipeline'),
      ]);
    });
  });
});
