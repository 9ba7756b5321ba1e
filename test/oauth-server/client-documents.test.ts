/** MCP clients that name a document at their vendor's site, where the broker cannot reach that: they register instead. */
import { describe, expect, test, vi } from 'vitest';
import { send } from '../world/agent.ts';
import { Browser } from '../world/browser.ts';
import { startClientSite } from '../world/client-documents.ts';
import { givenWorld, shared } from '../world/given.ts';
import { browserOf } from '../world/mcp-person.ts';

import { callMcp, OAuthClient } from '../world/oauth-client.ts';
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
