/** Client ID metadata documents of MCP clients: failing sites of vendors, and a broker that does not fetch documents. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { browserOf, CALLBACK } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { startClientSite } from '../world/servers/client-documents.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, givenWorld, shared, startWorld, type World } from '../world/world.ts';

const metadataOf = async ({ running }: World) =>
  (await send(`${running.baseUrl}/.well-known/oauth-authorization-server`, {})).body;

describe('with client id metadata documents', () => {
  const world = givenWorld();
  const site = shared(() => startClientSite(world));

  test('a document that cannot be fetched: the page says what to tell the operator, and the log names the host', async () => {
    expect((await metadataOf(world)).client_id_metadata_document_supported).toBe(true);
    const logged: unknown[][] = [];
    vi.spyOn(world.running.broker.log, 'warn').mockImplementation((...words: unknown[]) => void logged.push(words));
    const client = new OAuthClient(world);
    for (const [id, problem] of [
      [`${site.origin}/nothing-here`, 'status 404'],
      ['https://127.0.0.1:9/client.json', expect.stringMatching(/only from public addresses.*has to register/)],
    ] as const) {
      client.id = id;
      const { host } = new URL(id);
      const visit = await expectStatus(400, new Browser().get(client.address()));
      expect(visit.text).toContain('client_id metadata document fetch failed');
      expect(visit.text).toContain(`allow it to reach ${host}, or set AGENT_BROKER_CLIENT_ID_DOCUMENTS=off`);
      expect(logged.at(-1)).toEqual([{ host, problem }, 'a client id metadata document could not be fetched']);
    }
    vi.restoreAllMocks();
  });
});

describe('a client whose site fails after it was allowed', () => {
  const world = givenWorld();
  const site = shared(() => startClientSite(world));
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  /** Moves the time beyond the library's cache lifetime of a document. */
  const later = () => vi.setSystemTime(Date.now() + 16 * MINUTE_MS);
  let number = 0;

  async function letIn() {
    const client = new OAuthClient(world);
    const path = `/client-${++number}`;
    client.id = `${site.origin}${path}`;
    const document = { client_id: client.id, client_name: 'Documented', redirect_uris: [CALLBACK] };
    site.documents.set(path, document);
    const tokens = await client.tokens(browserOf(world, organisation.owner));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    onTestFinished(() => void vi.useRealTimers());
    later();
    return { client, path, document, refreshToken: tokens.refresh_token };
  }

  test.each<[string, unknown]>([
    ['is down', 503],
    ['does not answer', null],
    ['challenges whoever is no browser', 403],
    ['has a page of maintenance', { title: 'Back soon' }],
  ])('can refresh and revoke its tokens while the site %s', async (_what, answers) => {
    const { client, path, refreshToken } = await letIn();
    site.documents.set(path, answers);
    const refreshed = await expectStatus(200, client.refresh(refreshToken));
    later();
    const again = await expectStatus(200, client.refresh(refreshed.body.refresh_token));
    await expectStatus(200, client.post('/oauth/revoke', { client_id: client.id, token: again.body.refresh_token }));
    expect((await callMcp(client.baseUrl, again.body.access_token)).status).toBe(401);
  });

  test('has its document fetched again when the site is back', async () => {
    const { client, path, document, refreshToken } = await letIn();
    site.documents.set(path, 503);
    const refreshed = await client.refresh(refreshToken);
    site.documents.set(path, { ...document, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } });
    later();
    expect((await client.refresh(refreshed.body.refresh_token)).body.error).toBe('invalid_client');
  });

  test('is refused for a new authorization, when the site answers 404, and after a day', async () => {
    const { client, path, refreshToken } = await letIn();
    site.documents.set(path, 503);
    expect((await new Browser().get(client.address())).text).toContain('client_id metadata document fetch failed');
    site.documents.set(path, 404);
    expect((await client.refresh(refreshToken)).body.error).toBe('invalid_client');
    site.documents.set(path, 503);
    vi.setSystemTime(Date.now() + 24 * 60 * MINUTE_MS);
    expect((await client.refresh(refreshToken)).body.error).toBe('invalid_client');
  });
});

describe('without client id metadata documents', () => {
  test('the metadata says that documents are not supported, none is fetched, and a registered client can be authorised', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_CLIENT_ID_DOCUMENTS: 'off' });
    const site = await startClientSite(world);
    const organisation = await world.organisation();
    await organisation.policy(DEMO_RULES, 'default');
    expect(await metadataOf(world)).toMatchObject({
      client_id_metadata_document_supported: false,
      registration_endpoint: `${world.running.baseUrl}/oauth/register`,
    });
    const client = new OAuthClient(world);
    client.id = `${site.origin}/client.json`;
    const visit = await expectStatus(400, new Browser().get(client.address()));
    expect(visit.text).toContain('this broker does not fetch such documents');
    expect(site.asked).toEqual([]);
    expect((await client.register()).status).toBe(201);
    const redeemed = await client.redeem(await client.code(browserOf(world, organisation.owner)));
    expect((await callMcp(world.running.baseUrl, redeemed.body.access_token)).status).toBe(200);
  });
});
