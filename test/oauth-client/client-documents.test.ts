/** Client ID metadata documents: the broker as a client of authorization servers without registration. */
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { isClientDocument } from '../../broker/oauth-client/client-document.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { outlive } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { localUrlOf } from '../world/local-url.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const BASE_URL = 'https://broker.example';
const SOME_ID = '6f1f6d0e-6f2b-4a53-9c55-3f6b1f7f0a11';
const documentUrl = (connection: string) => `${BASE_URL}/.well-known/svc-oauth-client/${connection}`;

describe('a broker with an https address', () => {
  let server: AuthorizationServer;
  let world: World;
  let here: string;
  let organisation: Organisation;
  beforeAll(async () => {
    server = await startAuthorizationServer();
    world = await startWorld('sqlite', { BASE_URL, AGENT_BROKER_ALLOW_PRIVATE: server.address });
    here = localUrlOf(world);
    server.serve(BASE_URL, here);
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', {
      resource: `${server.issuer}/mcp`,
      authorization_servers: [server.issuer],
      scopes_supported: ['openid', 'offline_access'],
    });
    organisation = await world.organisation();
  });

  const headers = () => ({
    cookie: `__Host-svc_owner=${mintOwnerSession(world.running.broker, organisation.owner).token}`,
    'x-svc-csrf': '1',
    origin: BASE_URL,
  });
  const registrations = () => server.seen.filter((one) => one === 'POST /reg').length;

  async function platform(id: string, auth: object = {}): Promise<string> {
    const manifest = {
      kind: 'mcp',
      base_url: `${server.issuer}/mcp`,
      auth: { type: 'oauth2', ...auth },
      scopes: { [`${id}:all`]: ['tool *'] },
    };
    await organisation.platform({ id, manifest, secret: null });
    return await organisation.connection(id, { secret: null });
  }

  /** Connects, and returns the client id that the server received. */
  async function connect(connection: string): Promise<string> {
    const start = `${here}/owner/connections/${connection}/oauth/start`;
    const signedIn = headers();
    const begun = await expectStatus(200, send(start, { method: 'POST', headers: signedIn }));
    const browser = new Browser();
    browser.stopAt = ({ origin }) => origin === BASE_URL;
    const visit = await server.consent(browser, 'ann', begun.body.authorization_url);
    const { url } = visit;
    expect(url, visit.text).toMatch(/^https:..broker.example/);
    const done = await send(here + url.slice(BASE_URL.length), { headers: { ...signedIn, accept: 'text/html' } });
    expect([done.status, done.text.includes('The platform is connected.')], done.text).toEqual([200, true]);
    return new URL(begun.body.authorization_url).searchParams.get('client_id')!;
  }

  test('publishes a document for each connection, which contains nothing about the connection', async () => {
    const published = await expectStatus(200, send(`${here}/.well-known/svc-oauth-client/${SOME_ID}`, {}));
    expect(published.headers.get('cache-control')).toBe('public, max-age=3600');
    expect(published.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(published.body).toEqual({
      client_id: documentUrl(SOME_ID),
      client_name: 'Agent Broker',
      client_uri: BASE_URL,
      redirect_uris: [`${BASE_URL}/console/connected/${SOME_ID}`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'web',
    });
    expect((await send(`${here}/.well-known/svc-oauth-client/else`, {})).status).toBe(404);
  });

  test('connects an MCP server by its document, refreshes, and has the same client id when it connects again', async () => {
    const connection = await platform('tools');
    expect(await connect(connection)).toBe(documentUrl(connection));
    await outlive(world, connection);
    const tested = await send(`${here}/owner/connections/${connection}/test`, { method: 'POST', headers: headers() });
    expect(tested.status, tested.text).toBe(200);
    const asked = server.asked.map((form) => [form.get('grant_type'), form.get('resource'), form.get('client_id')]);
    const client = [`${server.issuer}/mcp`, documentUrl(connection)];
    expect(asked).toEqual([
      ['authorization_code', ...client],
      ['refresh_token', ...client],
    ]);
    expect(await connect(connection)).toBe(documentUrl(connection));
    expect(registrations()).toBe(0);
  });

  test('registers where the manifest says so, or where it is already registered', async () => {
    const told = await platform('told', { registration: 'dynamic' });
    const registered = await connect(told);
    expect([registered.includes('://'), registrations()]).toEqual([false, 1]);
    // An earlier registration stays in use, unless the manifest asks for a document.
    const change = (registration: string | undefined) =>
      world.db
        .updateTable('platform_versions')
        .set({
          manifest: JSON.stringify({
            kind: 'mcp',
            base_url: `${server.issuer}/mcp`,
            auth: { type: 'oauth2', ...(registration && { registration }) },
            scopes: { 'told:all': ['tool *'] },
          }),
        })
        .where('platform_id', '=', 'told')
        .execute();
    await change(undefined);
    await world.restart();
    here = localUrlOf(world);
    server.serve(BASE_URL, here);
    expect(registrations()).toBe(1);
    await change('document');
    expect(await connect(told)).toBe(documentUrl(told));
  });

  test('refuses a manifest with both a client id and a registration method', async () => {
    const plan = await send(
      `${here}/owner/governance/plan`,
      jsonPost(
        {
          text: JSON.stringify({
            platforms: {
              both: {
                kind: 'mcp',
                base_url: 'https://mcp.example',
                auth: { type: 'oauth2', client_id: 'x', registration: 'document' },
                scopes: {},
              },
            },
          }),
        },
        headers(),
      ),
    );
    expect([plan.status, plan.body.problems?.join()]).toEqual([
      400,
      expect.stringContaining('cannot be combined with a client_id'),
    ]);
  });
});

describe('a broker with an http address', () => {
  test('has no documents, and says why it cannot use one', async () => {
    const server = await startAuthorizationServer();
    const world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: server.address });
    server.serve(world.running.baseUrl, world.running.baseUrl);
    expectEnvelope(
      await send(`${world.running.baseUrl}/.well-known/svc-oauth-client/${SOME_ID}`, {}),
      404,
      'not_found',
    );
    const organisation = await world.organisation();
    const manifest = (registration: string) => ({
      kind: 'mcp',
      base_url: `${server.issuer}/mcp`,
      auth: { type: 'oauth2', issuer: server.issuer, registration },
      scopes: { 'tools:all': ['tool *'] },
    });
    const start = async (id: string, registration: string) => {
      await organisation.platform({ id, manifest: manifest(registration), secret: null });
      const connection = await organisation.connection(id, { secret: null });
      return await organisation.ask('POST', `/owner/connections/${connection}/oauth/start`);
    };
    const refused = await start('by-document', 'document');
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.detail).toContain('BASE_URL of this broker is http');
    await expectStatus(200, start('by-registration', 'dynamic'));
  });
});

test.each([
  [documentUrl(SOME_ID), true],
  [`https://earlier.example/.well-known/svc-oauth-client/${SOME_ID}`, true],
  [documentUrl('0f1f6d0e-6f2b-4a53-9c55-3f6b1f7f0a11'), false],
  [SOME_ID, false],
])('%s is a document of this connection: %s', (clientId, is) => {
  expect(isClientDocument(clientId, SOME_ID)).toBe(is);
});
