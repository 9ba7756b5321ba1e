/** The broker's client at a platform's OAuth server: referenced in the file, stored sealed, compared and never shown. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { resolveReferences } from '../../broker/config-file/secrets.ts';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { isProblem } from '../../broker/oauth-client/problem.ts';
import { describedFor } from '../../broker/oauth-client/registered.ts';
import { putTokens } from '../../broker/store/oauth-tokens.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, shared } from '../world/world.ts';
import { Governed, openBroker, problemsOf, read, warningsOf } from './governance-world.ts';

const DOCS = `platforms:
  docs:
    kind: rest
    base_url: https://docs.example/api
    auth: { type: oauth2, issuer: "https://id.docs.example", client_id: { env: DOCS_ID }, client_secret: { file: docs.key }, scopes: [read] }
    scopes: { "docs:read": ["GET /items"] }
connections:
  docs-main: { platform: docs }
`;
const SECRET = 'CANARY-client-0123456789-abcdefghij';

describe.each(ONE_STORE)(`clients of OAuth platforms on %s${postgresNote}`, (store) => {
  const broker = shared(() => openBroker(store));
  const governed = fresh(async () =>
    (await Governed.make(broker)).secret('env:DOCS_ID', 'our-id').secret('file:docs.key', SECRET),
  );

  const details = async (text = DOCS) =>
    (await governed.plan(text)).changes.filter(({ kind }) => kind === 'platform').flatMap((change) => change.details);
  const client = async (platformId = 'docs') => {
    const manifest = (await governed.present()).platforms.get(platformId)!;
    return await describedFor(
      { ...broker, baseUrl: 'https://broker.example' },
      { organisationId: governed.id, platformId, connectionId: '00000000-0000-4000-8000-000000000000' },
      manifest,
    );
  };
  const stored = async () => await broker.store.db.selectFrom('platform_secrets').selectAll().execute();

  test('are applied once, sealed, and can be read again', async () => {
    await governed.apply(DOCS);
    expect((await governed.plan(DOCS)).changes).toEqual([]);
    const found = await client();
    if (isProblem(found)) throw new Error(found.detail);
    expect([found.clientId, found.clientSecret?.reveal(), found.issuer, found.scopes]).toEqual([
      'our-id',
      SECRET,
      'https://id.docs.example',
      ['read'],
    ]);
    for (const { value } of await stored()) expect(Buffer.from(value).includes('CANARY')).toBe(false);
    expect(JSON.stringify(found)).not.toContain('CANARY');
  });

  test('a plan shows a new platform, and that its client was given', async () => {
    const { changes } = await governed.plan(DOCS);
    const platform = changes.filter(({ kind }) => kind === 'platform');
    expect(platform.map(({ action, details }) => [action, details.at(-1)])).toEqual([
      ['create', 'scopes: 1'],
      ['update', 'auth.client_secret: given'],
    ]);
    expect(JSON.stringify(changes)).not.toMatch(/CANARY|our-id/);
  });

  test('a changed secret is shown as changed, and replaced', async () => {
    await governed.apply(DOCS);
    governed.secret('file:docs.key', `${SECRET}-2`);
    expect(await details()).toEqual(['auth.client_secret: changed']);
    await governed.apply(DOCS);
    expect((await client()) as object).toMatchObject({ clientId: 'our-id' });
    expect(((await client()) as { clientSecret: { reveal(): string } }).clientSecret.reveal()).toBe(`${SECRET}-2`);
    expect(await details()).toEqual([]);
  });

  test('a secret that is no longer referenced is deleted, and all of them with the platform', async () => {
    await governed.apply(DOCS);
    const mine = async () => (await stored()).filter((one) => one.organisation_id === governed.id);
    expect(await mine()).toHaveLength(2);
    const publicClient = DOCS.replace(
      'client_id: { env: DOCS_ID }, client_secret: { file: docs.key }',
      'client_id: here',
    );
    expect(await details(publicClient)).toEqual([
      expect.stringContaining('auth: '),
      'auth.client_id: removed',
      'auth.client_secret: removed',
    ]);
    await governed.apply(publicClient);
    expect(await mine()).toEqual([]);
    expect((await client()) as object).toMatchObject({ clientId: 'here', clientSecret: undefined });
    await governed.apply(DOCS);
    await governed.apply('platforms: {}\nconnections: {}\n');
    expect(await mine()).toEqual([]);
  });

  test('with missing values nothing is applied, and the problem names the reference', async () => {
    governed.values.delete('file:docs.key');
    governed.secret('env:DOCS_ID', '');
    expect(await governed.refusal(DOCS)).toEqual([
      expect.stringMatching(/5:\d+: .*client_id.*the value of env:DOCS_ID is empty/s),
      expect.stringMatching(/5:\d+: .*client_secret.*the value of file:docs\.key was not given/s),
    ]);
  });

  test('an export references them, applies without a change, and contains no secret', async () => {
    await governed.apply(DOCS);
    const text = await exportGovernance(broker, governed.id, governed.now);
    expect(text).toContain('client_secret:');
    expect(text).toContain('file: docs.key');
    expect(text).not.toMatch(/CANARY|our-id/);
    expect((await governed.plan(text)).changes).toEqual([]);
  });

  test('a connection waits for an admin, as the plan says, and its tokens stay through every apply', async () => {
    const { plan } = await governed.apply(DOCS);
    expect(plan.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('an admin does that in the console'),
    ]);
    const [connection] = (await governed.present()).connections;
    const place = { organisationId: governed.id, id: connection!.id };
    await putTokens(
      broker.store.db,
      { ...place, platformId: 'docs' },
      {
        credential: Buffer.from('sealed'),
        refreshToken: Buffer.from('sealed too'),
        tokenId: 'one',
        oauth: '{}',
        upstreamScopes: '["read"]',
      },
      Date.now(),
    );
    expect((await governed.plan(DOCS)).changes).toEqual([]);
    await governed.apply(DOCS.replace('{ platform: docs }', '{ platform: docs, default: false }'));
    const [after] = (await governed.present()).connections;
    expect(after).toMatchObject({ is_default: 0, token_id: 'one', upstream_scopes: '["read"]', revision: 1 });
    expect(Buffer.from(after!.refresh_token!).toString()).toBe('sealed too');
    expect(await exportGovernance(broker, governed.id, governed.now)).toContain(
      'It was connected through OAuth; its tokens stay.',
    );
    // A secret of the connection replaces the tokens.
    governed.secret('env:TOKEN', 'a-token-0123456789');
    await governed.apply(DOCS.replace('{ platform: docs }', '{ platform: docs, secret: { env: TOKEN } }'));
    const [own] = (await governed.present()).connections;
    expect(own).toMatchObject({ token_id: null, refresh_token: null, oauth: null, upstream_scopes: null, revision: 2 });
  });

  test('tokens are deleted when the connection is moved to another platform', async () => {
    const two = DOCS.replace(
      'connections:',
      `${DOCS.split('\n').slice(1, 6).join('\n').replace('docs:', 'other:')}\nconnections:`,
    );
    await governed.apply(two);
    const [connection] = (await governed.present()).connections;
    const tokens = {
      credential: Buffer.from('x'),
      refreshToken: null,
      tokenId: 'one',
      oauth: '{}',
      upstreamScopes: null,
    };
    const place = { organisationId: governed.id, id: connection!.id, platformId: 'docs' };
    await putTokens(broker.store.db, place, tokens, Date.now());
    // The plan says so, because somebody has to connect again.
    const ends = 'its OAuth tokens end, and are revoked';
    const moves = await governed.plan(two.replace('{ platform: docs }', '{ platform: other }'));
    expect(moves.changes[0]).toMatchObject({ name: 'docs-main', details: expect.arrayContaining([ends]) });
    expect(moves.warnings.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('is not connected yet'),
    );
    governed.secret('env:TOKEN', 'a-token-0123456789');
    const given = await governed.plan(two.replace('{ platform: docs }', '{ platform: docs, secret: { env: TOKEN } }'));
    expect(given.changes[0]).toMatchObject({ name: 'docs-main', details: expect.arrayContaining([ends]) });
    await governed.apply(two.replace('{ platform: docs }', '{ platform: other }'));
    const [moved] = (await governed.present()).connections;
    expect(moved).toMatchObject({ platform_id: 'other', credential: null, token_id: null, oauth: null });
  });

  test('a plan says that a secret is kept where the connection moves, and warns when it does not fit there', async () => {
    const text = (platform: string, secret = '') => `platforms:
  plain:
    kind: rest
    base_url: https://plain.example/api
    auth: { type: bearer }
    scopes: { "plain:read": ["GET /items"] }
  signed:
    kind: rest
    base_url: https://signed.example/api
    auth: { type: aws_sigv4, region: eu-central-1, service: execute-api }
    scopes: { "signed:read": ["GET /items"] }
connections:
  one: { platform: ${platform}${secret} }
`;
    governed.secret('env:TOKEN', 'a-token-0123456789');
    await governed.apply(text('plain', ', secret: { env: TOKEN }'));
    const moves = await governed.plan(text('signed'));
    expect(moves.changes[0]).toMatchObject({
      name: 'one',
      details: expect.arrayContaining(['its stored secret is kept, and sent to signed from then on']),
    });
    const unfit = expect.stringMatching(/^the stored secret .*: give the connection another one/);
    expect(moves.warnings.map(({ message }) => message)).toContainEqual(unfit);
    // Parts would be sent as the text of a JSON object.
    const inParts = text('plain', ', secret: { user: { env: TOKEN }, password: { env: TOKEN } }');
    expect(await governed.refusal(inParts)).toEqual([
      expect.stringContaining(
        'connections.one.secret: the secret is given in parts, and this platform takes a single text.',
      ),
    ]);
    // The same where the connection stays, and its platform changes.
    const changed = await governed.plan(
      text('plain').replace('type: bearer', 'type: client_credentials, token_endpoint: "https://id.example/t"'),
    );
    expect(changed.warnings.map(({ message }) => message)).toContainEqual(unfit);
    const sent = await governed.plan(text('plain').replace('type: bearer', 'type: query, name: key'));
    expect(sent.warnings.map(({ message }) => message)).not.toContainEqual(unfit);
  });

  test.each([
    ['gmail', 'https://accounts.google.com/o/oauth2/v2/auth', { access_type: 'offline', prompt: 'consent' }],
    ['github', 'https://github.com/login/oauth/authorize', undefined],
    ['slack', 'https://slack.com/oauth/v2/authorize', undefined],
    ['notion', 'https://api.notion.com/v1/oauth/authorize', { owner: 'user' }],
    ['linear', 'https://linear.app/oauth/authorize', undefined],
  ])('%s defines its server, and a file only needs the client', async (use, authorize, parameters) => {
    await governed.apply(`platforms:
  it: { use: ${use}, auth: { type: oauth2, client_id: mine, client_secret: { file: docs.key } } }
`);
    const found = await client('it');
    if (isProblem(found)) throw new Error(found.detail);
    expect([found.clientId, found.endpoints.authorization_endpoint]).toEqual(['mine', authorize]);
    expect(found.serverOptions.authorization_parameters).toEqual(parameters);
    expect(found.clientSecret?.reveal()).toBe(SECRET);
  });

  test('with a configured issuer the built-in endpoints are ignored, because they may belong to another server', async () => {
    await governed.apply(`platforms:
  it: { use: github, auth: { type: oauth2, issuer: "https://id.acme.example", client_id: mine } }
`);
    expect((await client('it')) as object).toMatchObject({
      issuer: 'https://id.acme.example',
      endpoints: { authorization_endpoint: undefined, token_endpoint: undefined, revocation_endpoint: undefined },
    });
  });

  const HERE = 'https://acme.example';
  const TOKEN_ENDPOINT = `token_endpoint: "${HERE}/token"`;
  test.each([
    ['github', `issuer: "${HERE}"`, '', undefined, undefined],
    ['notion', `authorization_endpoint: "${HERE}/authorize", ${TOKEN_ENDPOINT}`, '', undefined, undefined],
    ['notion', `${TOKEN_ENDPOINT}, revocation_endpoint: "${HERE}/revoke"`, '', undefined, `${HERE}/revoke`],
    ['github', `${TOKEN_ENDPOINT}, account: { url: "${HERE}/user", pointer: /login }`, '', `${HERE}/user`, undefined],
    ['github', '', `base_url: "${HERE}/api/v3",`, undefined, undefined],
    ['github', '', 'base_url: "https://api.github.com/x",', 'https://api.github.com/user', undefined],
    ['notion', '', '', 'https://api.notion.com/v1/users/me', 'https://api.notion.com/v1/oauth/revoke'],
  ])(
    '%s with auth { %s } %s: tokens are sent to no built-in endpoint of another server',
    async (use, auth, base, account, revoke) => {
      await governed.apply(`platforms:
  it: { use: ${use}, ${base} auth: { type: oauth2, client_id: mine, ${auth} } }
`);
      const found = await client('it');
      if (isProblem(found)) throw new Error(found.detail);
      expect(found.serverOptions.account?.url).toBe(account);
      expect(found.endpoints.revocation_endpoint).toBe(revoke);
    },
  );
});

test('their references are resolved together with all others', () => {
  const folder = newFolder();
  writeFileSync(join(folder, 'docs.key'), `${SECRET}\n`);
  const resolved = resolveReferences(read(DOCS), folder, { DOCS_ID: 'our-id' });
  const values = resolved.ok ? [...resolved.values].map(([key, secret]) => [key, secret.reveal()]) : resolved.problems;
  expect(values).toEqual([
    ['env:DOCS_ID', 'our-id'],
    ['file:docs.key', SECRET],
  ]);
  const without = resolveReferences(read(DOCS), newFolder(), {});
  expect(without.ok ? [] : without.problems.map(formatProblem)).toEqual([
    expect.stringContaining('DOCS_ID is not set'),
    expect.stringContaining('there is none'),
  ]);
});

test('a platform with an OAuth client causes no warning', () => {
  expect(warningsOf(DOCS)).toEqual([]);
});

test.each([
  ['state', 'x'],
  ['redirect_uri', 'https://evil.test'],
  ['code_challenge_method', 'plain'],
])('a manifest cannot set the parameter %s of the authorization request', (name, value) => {
  const text = DOCS.replace('scopes: [read]', `authorization_parameters: { ${name}: "${value}" }`);
  expect(problemsOf(text).join()).toContain('is a parameter that the broker sets itself');
});
