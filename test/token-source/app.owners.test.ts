/** What owners can do with connections to an App, and what they are shown. */
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { INSTALLATION } from '../world/servers/app-platform.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenAppWorld, READ } from './app-world.ts';

describe.each(ONE_STORE)(`owners can, for a connection to an App, on %s${postgresNote}`, (store) => {
  const app = givenAppWorld(store);
  const { host, world, organisation } = app;
  const connect = (body: object) =>
    organisation.ask('POST', '/owner/connections', { platform: 'codehost', label: 'second', ...body });
  const tested = async (id: string) => (await organisation.ask('POST', `/owner/connections/${id}/test`, {})).body;
  const named = async (label: string) =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { label: string }) => one.label === label,
    );
  const first = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0];

  test('connect it without a secret when the platform names the installation, or with the number of one', async () => {
    const named = await connect({});
    const { state, connects_by } = named.body;
    expect([named.status, state, connects_by], named.text).toEqual([201, 'connected', 'app']);
    expect((await app.apply({ installation: null })).status).toBe(200);
    expect((await connect({ label: 'third' })).body.error).toBe('invalid_request');
    expect((await connect({ label: 'third', secret: 'ghp_0123456789abcdef' })).body.detail).toContain(
      "is not the number of an App's installation",
    );
    // Installation ids on GitHub Enterprise Server begin at 1.
    expect((await connect({ label: 'small', secret: '7' })).status).toBe(201);
    const numbered = await expectStatus(201, connect({ label: 'third', secret: INSTALLATION }));
    const agent = await organisation.agent({
      rules: [{ effect: 'allow' }],
      grants: { codehost: { scopeList: ['codehost:contents.read'], connection_id: numbered.body.id } },
    });
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('test it: the result names where it is installed, and granted scopes for which it lacks permissions', async () => {
    await app.agent({}, ['contents.read', 'contents.write', 'checks.read']);
    const { id } = await first();
    const answer = await tested(id);
    expect(answer.ok).toBe(true);
    expect(answer.detail).toContain('The App is installed at acme, for some repositories.');
    expect(answer.detail).toContain('no permission for: checks: read (codehost:checks.read). Change');
    host.installations.get(INSTALLATION)!.permissions.checks = 'read';
    expect((await tested(id)).detail).toMatch(/for some repositories\.$/);
    // Environment secrets need another permission, without which the rest of the scope works.
    await app.agent({}, ['secrets.write']);
    host.installations.get(INSTALLATION)!.permissions.secrets = 'write';
    expect((await tested(id)).detail).toMatch(/for some repositories\.$/);
    // A test requests no more permissions than it needs.
    expect(host.exchanges[0]?.permissions).toEqual({ metadata: 'read' });
  });

  test('remove it: its tokens are deleted and revoked', async () => {
    const { body } = await connect({ label: 'short-lived' });
    await tested(body.id);
    const kept = async () =>
      (await world.db.selectFrom('upstream_tokens').selectAll().where('connection_id', '=', body.id).execute()).length;
    expect(await kept()).toBe(1);
    const [token] = host.issued.keys();
    expect((await organisation.ask('DELETE', `/owner/connections/${body.id}`)).status).toBe(200);
    expect(await kept()).toBe(0);
    expect(host.revoked).toEqual([token]);
  });

  test('give it another installation: tokens of the previous one are revoked', async () => {
    const agent = await app.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const [first] = host.issued.keys();
    const other = '42000002';
    host.installations.set(other, structuredClone(host.installations.get(INSTALLATION)!));
    expect((await app.apply({ installation: other })).status).toBe(200);
    expect(host.revoked).toEqual([first]);
    expect((await agent.act(READ)).status).toBe(200);
    const { id } = await named('codehost-main');
    const again = await organisation.ask('POST', `/owner/connections/${id}/secret`, { secret: INSTALLATION });
    expect(again.status, again.text).toBe(200);
    expect(host.revoked).toHaveLength(2);
    // Not with the revoked token, although it is for the same installation.
    const { status, body } = await agent.act(READ);
    expect([status, body._meta.upstream_status]).toEqual([200, 200]);
    // Applying the file again changes and revokes nothing.
    expect((await app.apply()).status).toBe(200);
    expect(host.revoked).toHaveLength(2);
    expect([...host.issued.keys()].filter((token) => host.revoked.includes(token))).toEqual([]);
  });

  test('replace the App’s key: tokens obtained with the previous key are revoked, and no longer used', async () => {
    const agent = await app.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const [token] = host.issued.keys();
    expect((await app.apply()).status).toBe(200);
    expect(host.revoked).toEqual([]);
    const pem = host.rotate();
    await expectStatus(200, app.apply({ pem }));
    expect(host.revoked).toEqual([token]);
    const { status, body } = await agent.act(READ);
    expect([status, body._meta.upstream_status]).toEqual([200, 200]);
    expect(host.exchanges).toHaveLength(2);
    expect((await app.apply({ pem })).body.changes).toEqual([]);
    await app.apply({ pem: host.rotate() });
  });

  test('remove it while the platform is unavailable, or refuses', async () => {
    for (const status of [500, 401]) {
      const { body } = await connect({ label: `down-${status}` });
      await tested(body.id);
      host.instead = (path) => (path === '/installation/token' ? { status, body: '{}' } : undefined);
      expect((await organisation.ask('DELETE', `/owner/connections/${body.id}`)).status).toBe(200);
      host.instead = undefined;
    }
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections.map(({ label }: { label: string }) => label)).toEqual(['codehost-main']);
  });

  test('a pasted token that may change workflows gives a warning', async () => {
    await organisation.platform({
      id: 'pasted',
      manifest: { base_url: host.url, needs: { 'demo:write': ['workflow'] } },
    });
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const { id } = connections.find(({ platform }: { platform: string }) => platform === 'pasted');
    const warned = async (scopes: string | undefined) => {
      host.instead = () => ({
        status: 200,
        body: '{}',
        headers: scopes === undefined ? {} : { 'x-oauth-scopes': scopes },
      });
      return (await tested(id)).detail.includes('Warning: the token has the scope "workflow"');
    };
    expect([
      await warned('repo, workflow'),
      await warned('repo'),
      await warned('workflows'),
      await warned(undefined),
    ]).toEqual([true, false, false, false]);
  });
});
