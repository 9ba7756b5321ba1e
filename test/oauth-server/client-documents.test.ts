/** MCP clients that name a document at their vendor's site, where the broker cannot reach that: they register instead. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { send } from '../world/agent.ts';
import { Browser } from '../world/browser.ts';
import { startClientSite } from '../world/client-documents.ts';
import { givenWorld, shared } from '../world/given.ts';
import { browserOf, CALLBACK } from '../world/mcp-person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, startWorld, type World } from '../world/world.ts';

const metadataOf = async ({ running }: World) =>
  (await send(`${running.baseUrl}/.well-known/oauth-authorization-server`, {})).body;

describe('with client id metadata documents', () => {
  const world = givenWorld();
  const site = shared(() => startClientSite(world));

  test('a document that cannot be had: the page says what to tell whoever runs the broker, and the log names the host', async () => {
    expect((await metadataOf(world)).client_id_metadata_document_supported).toBe(true);
    const logged: unknown[][] = [];
    vi.spyOn(world.running.broker.log, 'warn').mockImplementation((...words: unknown[]) => void logged.push(words));
    const client = new OAuthClient(world);
    for (const id of [`${site.origin}/nothing-here`, 'https://127.0.0.1:9/client.json']) {
      client.id = id;
      const { host } = new URL(id);
      const visit = await new Browser().get(client.address());
      expect(visit.status).toBe(400);
      expect(visit.text).toContain('client_id metadata document fetch failed');
      expect(visit.text).toContain(`let it reach ${host}, or set AGENT_BROKER_CLIENT_ID_DOCUMENTS=off`);
      expect(logged.at(-1)).toEqual([
        { host, problem: expect.any(String) },
        'a client id metadata document could not be fetched',
      ]);
    }
    vi.restoreAllMocks();
  });
});

describe('a client whose site fails after it was let in', () => {
  const world = givenWorld();
  const site = shared(() => startClientSite(world));
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  /** Longer than the library keeps a document. */
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
    ['challenges whoever is no browser', 403],
    ['has a page of maintenance', { title: 'Back soon' }],
  ])('refreshes and gives back its tokens while the site %s', async (_what, answers) => {
    const { client, path, refreshToken } = await letIn();
    site.documents.set(path, answers);
    const refreshed = await client.refresh(refreshToken);
    expect(refreshed.status, refreshed.text).toBe(200);
    later();
    const again = await client.refresh(refreshed.body.refresh_token);
    expect(again.status, again.text).toBe(200);
    expect((await client.post('/oauth/revoke', { client_id: client.id, token: again.body.refresh_token })).status).toBe(
      200,
    );
    expect((await callMcp(client.baseUrl, again.body.access_token)).status).toBe(401);
  });

  test('is asked for its document again when the site is back', async () => {
    const { client, path, document, refreshToken } = await letIn();
    site.documents.set(path, 503);
    const refreshed = await client.refresh(refreshToken);
    site.documents.set(path, { ...document, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } });
    later();
    expect((await client.refresh(refreshed.body.refresh_token)).body.error).toBe('invalid_client');
  });

  test('is nobody for an authorization, nor when the site says that there is no such document, nor after a day', async () => {
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
  test('the metadata say so, no document is fetched, and a client that registers signs in', async () => {
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
    const visit = await new Browser().get(client.address());
    expect(visit.status).toBe(400);
    expect(visit.text).toContain('this broker does not fetch such documents');
    expect(site.asked).toEqual([]);
    expect((await client.register()).status).toBe(201);
    const redeemed = await client.redeem(await client.code(browserOf(world, organisation.owner)));
    expect((await callMcp(world.running.baseUrl, redeemed.body.access_token)).status).toBe(200);
  });
});
