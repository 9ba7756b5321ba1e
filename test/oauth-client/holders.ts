/** The possible holders of tokens from an authorization server: a connection, and a person for whom a connection is used. */
import { expect } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { connectAtOnce, outlive } from '../world/browser/connecting.ts';
import { outlivePerson, start } from '../world/people.ts';
import { type LyingServer, startLyingServer } from '../world/servers/lying-authorization-server.ts';
import type { StoreKind } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

export const READ = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };
export const CLIENT_SECRET = 'CANARY-client-secret-0123456789-abcdefghij';

export type Place = {
  server: LyingServer;
  world: World;
  organisation: Organisation;
  agent: TestAgent;
  connection: string;
};

/** Creates an organisation with a platform at a scriptable OAuth server; `perPerson`: the platform's setting. */
export async function place(
  store: StoreKind,
  environment: Record<string, string> = {},
  perPerson: object = { enabled: false },
): Promise<Place> {
  const server = await startLyingServer();
  const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address, ...environment });
  const organisation = await world.organisation();
  const manifest = {
    kind: 'rest',
    base_url: `${server.issuer}/api`,
    auth: server.auth({ client_secret: { env: 'DOCS_SECRET' } }),
    scopes: { 'docs:read': ['GET /items'] },
    per_person: perPerson,
  };
  const applied = await organisation.ask('POST', '/owner/governance/apply', {
    text: JSON.stringify({ platforms: { docs: manifest }, connections: { main: { platform: 'docs' } } }),
    values: { 'env:DOCS_SECRET': CLIENT_SECRET },
  });
  expect(applied.status, applied.text).toBe(200);
  const connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
  const agent = await organisation.agent({
    policy: await organisation.policy([{ effect: 'allow' }]),
    grants: { docs: { scopeList: ['docs:read'] } },
  });
  return { server, world, organisation, agent, connection };
}

/** The kinds of holders: how tokens are obtained, how they expire, and what the calls look like. */
export const HOLDERS = [
  {
    table: 'connections' as const,
    perPerson: undefined,
    call: READ,
    give: ({ world, organisation, connection }: Place, _id?: string) =>
      connectAtOnce(world, organisation.owner, connection),
    outlive: ({ world, connection }: Place) => outlive(world, connection),
  },
  {
    table: 'person_tokens' as const,
    perPerson: { enabled: true, asserted: ['slack'], asserted_consent: 'link' },
    call: { ...READ, caller: { source: 'slack', id: 'U-ANN' } },
    give: async ({ agent }: Place, id = 'U-ANN') => {
      const { body } = await agent.act({ ...READ, caller: { source: 'slack', id } });
      const browser = new Browser();
      expect((await browser.get(await start(browser, body.consent_url))).text).toContain('Use this account?');
      expect((await browser.post(`${body.consent_url}/keep`, {})).status).toBe(200);
    },
    outlive: ({ world, organisation, server }: Place) => outlivePerson(world, organisation, server.issuer),
  },
];
