/** Registrations of the broker that expire, or that their server deletes: the affected owner or people have to consent again. */
import { beforeEach, describe, expect, test } from 'vitest';
import { readCredential, writeCredential } from '../../broker/token-source/access-token.ts';
import { callOf } from '../upstream-mcp/connected.ts';
import type { TestAgent } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { connectAtOnce, outlive } from '../world/browser/connecting.ts';
import { confirmAll, start } from '../world/people.ts';
import { startSdkAuthServer } from '../world/servers/sdk-auth-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, type Organisation, shared } from '../world/world.ts';

const MINUTE_MS = 60_000;

describe.each(ONE_STORE)(`registrations that end, on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;
  const server = shared(() => startSdkAuthServer());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeEach(async () => {
    world.clock.skewMs = 0;
    organisation = await world.organisation();
  });

  const connected = async (manifest: object = {}) => {
    const entry = { kind: 'mcp', base_url: server.url, auth: { type: 'oauth2' }, scopes: { 'tools:all': ['tool *'] } };
    await organisation.platform({ id: 'tools', manifest: { ...entry, ...manifest }, secret: null });
    connection = await organisation.connection('tools', { secret: null });
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } });
  };
  const call = () => agent.act(callOf('search_issues', 'tools:all'));

  const registrations = () =>
    world.db.selectFrom('platform_secrets').selectAll().where('organisation_id', '=', organisation.id).execute();
  /** Ages registrations. Those at servers made with the MCP SDK expire after 30 days. */
  const ageRegistrations = async (days: number) => {
    const { vault } = world.running.broker;
    const ms = days * 24 * 60 * MINUTE_MS;
    for (const { id, value, created_at } of await registrations()) {
      const place = { table: 'platform_secrets' as const, organisationId: organisation.id, rowId: id };
      const registration = JSON.parse(vault.open(place, value).toString());
      expect(registration.expires_at).toBeGreaterThan(Date.now());
      const aged = vault.seal(place, JSON.stringify({ ...registration, expires_at: registration.expires_at - ms }));
      await world.db
        .updateTable('platform_secrets')
        .set({ value: aged, created_at: Number(created_at) - ms })
        .where('id', '=', id)
        .execute();
    }
  };
  const endRegistrations = () => ageRegistrations(31);

  test('after a registration has expired, the next refresh asks an admin to connect again, which fixes it', async () => {
    await connected();
    await connectAtOnce(world, organisation.owner, connection);
    expect((await call()).status).toBe(200);
    await endRegistrations();
    await outlive(world, connection);
    const refused = await call();
    expect([refused.status, refused.body.error], refused.text).toEqual([409, 'platform_reauth_needed']);
    expect(refused.body.connect_url).toContain(connection);
    const listed = (await organisation.ask('GET', '/owner/connections')).body.connections;
    expect(listed.map(({ status }: { status: string }) => status)).toEqual(['reauth_needed']);
    await connectAtOnce(world, organisation.owner, connection);
    expect((await call()).status).toBe(200);
  });

  test('when the server has deleted a registration, the broker treats it as an outage for ten minutes, then registers again', async () => {
    await connected();
    server.clients.clear();
    await connectAtOnce(world, organisation.owner, connection);
    const [deleted] = server.clients.keys();
    const other = await organisation.connection('tools', { secret: null, isDefault: false });
    await connectAtOnce(world, organisation.owner, other);
    server.clients.delete(deleted!);
    await outlive(world, connection);
    const refused = await call();
    expect([refused.status, refused.body.code], refused.text).toEqual([502, 'client_rejected']);
    expect(refused.body.detail).toContain('does not know the client that the broker registered there');
    world.clock.skewMs = 11 * MINUTE_MS;
    await expect.poll(async () => (await call()).status, { timeout: 10_000 }).toBe(409);
    await connectAtOnce(world, organisation.owner, connection);
    expect((await call()).status).toBe(200);
    expect(server.clients.size).toBe(2);
    // The registration of another connection is still used.
    await outlive(world, other);
    expect((await organisation.ask('POST', `/owner/connections/${other}/test`)).status).toBe(200);
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections.map(({ status }: { status: string }) => status)).toEqual(['active', 'active']);
  });

  const ofPeople = { per_person: { enabled: true, asserted: ['slack'] } };
  const by = (id: string) => agent.act({ ...callOf('search_issues', 'tools:all'), caller: { source: 'slack', id } });
  const consent = async (id: string, given?: string) => {
    const browser = new Browser();
    const url = given ?? (await by(id)).body.consent_url;
    expect((await browser.get(await start(browser, url))).status).toBe(200);
    await browser.post(`${url}/keep`, {});
    await confirmAll(organisation);
  };
  /** Makes all tokens of people here expire, so that the next call refreshes them. */
  const outlivePeople = async () => {
    const { vault, clock } = world.running.broker;
    for (const row of await world.db
      .selectFrom('person_tokens')
      .selectAll()
      .where('organisation_id', '=', organisation.id)
      .execute()) {
      const place = { table: 'person_tokens' as const, organisationId: organisation.id, rowId: row.id };
      const token = readCredential(vault.open(place, row.credential!).toString());
      const times = { issuedAt: clock() - 2 * MINUTE_MS, refreshAt: clock() - MINUTE_MS, expiresAt: clock() - 1_000 };
      const over = writeCredential({ ...token!, ...times });
      await world.db
        .updateTable('person_tokens')
        .set({ credential: vault.seal(place, over) })
        .where('id', '=', row.id)
        .execute();
    }
  };

  test('a registration with less than half of its lifetime left is not used for a new consent, but still for earlier ones', async () => {
    await connected(ofPeople);
    server.clients.clear();
    await consent('ANN');
    await ageRegistrations(14);
    await consent('BOB');
    expect(server.clients.size).toBe(1);
    await ageRegistrations(2);
    await consent('CAROL');
    expect(server.clients.size).toBe(2);
    await outlivePeople();
    const refreshed = server.given.refresh_token;
    for (const id of ['ANN', 'BOB', 'CAROL']) expect((await by(id)).status, id).toBe(200);
    expect(server.given.refresh_token).toBe(refreshed + 3);
    // Half a month later the first registration has expired, and is deleted when the next one is made.
    await ageRegistrations(13);
    await ageRegistrations(3);
    await consent('DAVE');
    expect([server.clients.size, (await registrations()).length]).toEqual([3, 2]);
    await outlivePeople();
    for (const id of ['CAROL', 'DAVE']) expect((await by(id)).status, id).toBe(200);
    expect([409, 412]).toContain((await by('ANN')).status);
  });

  test('an expired registration makes each of its people consent again, and affects nobody else’s calls', async () => {
    await connected(ofPeople);
    await consent('ANN');
    expect((await by('ANN')).status).toBe(200);
    await endRegistrations();
    await outlivePeople();
    await consent('CAROL');
    for (let n = 0; n < 25; n++) expect([409, 412]).toContain((await by('ANN')).status);
    expect((await by('CAROL')).status).toBe(200);
    const body = JSON.stringify({ platform: 'tools', caller: { source: 'slack', id: 'ANN' } });
    const begun = await agent.request('POST', '/v1/consent/caller/start', {
      body,
      headers: { 'content-type': 'application/json' },
    });
    await consent('ANN', begun.body.consent_url);
    expect((await by('ANN')).status).toBe(200);
  });
});
