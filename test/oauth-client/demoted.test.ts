/** An admin who loses the role while the authorization server issues the tokens connects nothing. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { browserOf, pressConnect } from '../world/browser/connecting.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`an admin who loses the role while connecting on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  const server = shared(() => startAuthorizationServer());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeAll(async () => {
    server.serve(world.running.baseUrl);
    organisation = await world.organisation();
    const document = {
      platforms: { docs: docsManifest(server, {}) },
      connections: { main: { platform: 'docs' }, other: { platform: 'docs' } },
    };
    expect((await govern(organisation, document)).status).toBe(200);
  });
  const connections = async () => (await organisation.ask('GET', '/owner/connections')).body.connections;

  test.each([
    ['demoted', ({ email }: { email: string }) => organisation.ask('POST', '/owner/owners', { email, role: 'viewer' })],
    ['removed', ({ id }: { id: string }) => organisation.ask('DELETE', `/owner/owners/${id}`)],
  ])('one who is %s meanwhile: nothing is connected, and the tokens are revoked', async (_what, lose) => {
    const colleague = await organisation.addOwner('admin');
    const browser = browserOf(world, colleague);
    const { id } = (await connections()).find(({ state }: { state: string }) => state === 'not_connected');
    const { body } = await pressConnect(world, browser, id);
    const lost: number[] = [];
    server.issued = async () => {
      lost.push((await lose(colleague)).status);
    };
    onTestFinished(() => {
      server.issued = undefined;
    });
    const ended = await server.consent(browser, 'mallory', body.authorization_url);
    expect(lost).toEqual([200]);
    const one = (await connections()).find((each: { id: string }) => each.id === id);
    expect(one).toMatchObject({ state: 'not_connected', oauth: null });
    expect([ended.status, ended.text]).toEqual([
      403,
      expect.stringContaining('You were removed or signed out, or your role was changed'),
    ]);
    expect(server.seen).toContain('POST /token/revocation');
  });
});
