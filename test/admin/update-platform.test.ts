/** Built-in platforms after an upgrade: they keep the manifest of the release that created them until an admin updates them. */
import { describe, expect, test } from 'vitest';
import { manifestDifference } from '../../broker/admin/platforms/manifest-difference.ts';
import { hasNewerManifest, newestEntry } from '../../broker/admin/platforms/newest-manifest.ts';
import { readManifest } from '../../broker/facts/stored-manifests.ts';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { Manifest } from '../../broker/platforms/manifest.ts';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { expectStatus } from '../world/agent.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, fresh, givenWorld } from '../world/world.ts';

/** A manifest of an earlier release: a scope had fewer operations, another did not exist, and no header was refused. */
function earlier(manifest: Manifest): Manifest {
  const { 'stripe:customers.read': customers = [], 'stripe:balance.read': _balance, ...scopes } = manifest.scopes;
  const { refused_headers: _refused, ...rest } = manifest;
  const before = { ...scopes, 'stripe:customers.read': customers.slice(0, 1) };
  return { ...rest, scopes: before, forbidden_headers: ['stripe-account'] };
}

describe.each(STORES)(`updating a built-in platform on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const ask = (method: string, path: string, body?: unknown) => organisation.ask(method, path, body);
  const update = (version: number, dry_run = false) => ask('POST', '/owner/platforms/pay/update', { version, dry_run });
  const platform = async () => (await ask('GET', '/owner/platforms/pay')).body;
  const listed = async () =>
    (await ask('GET', '/owner/platforms')).body.platforms.find(
      (one: { platform_id: string }) => one.platform_id === 'pay',
    );
  const events = async () =>
    (await ask('GET', '/owner/audit?kind=event')).body.rows.filter(
      ({ reason }: { reason: string }) => reason === 'platform_changed',
    );
  /** Creates a platform with local changes, in the form of an earlier release, with or without the stored entry. */
  const made = async (more: object, { entry }: { entry?: object | null } = {}) => {
    const written = { use: 'stripe', ...more };
    const answer = await expectStatus(201, ask('POST', '/owner/platforms', { platform: 'pay', entry: written }));
    expect(answer.body.update_available).toBe(false);
    const kept = entry === undefined ? written : entry;
    const place = { organisationId: organisation.id, platformId: 'pay' };
    const manifest = JSON.stringify(earlier(answer.body.manifest));
    await putPlatform(world.db, { ...place, manifest, entry: kept && JSON.stringify(kept) }, Date.now());
  };
  const OWN = {
    base_url: 'https://pay.example',
    name: 'Our shop',
    scopes: { 'stripe:payouts.write': [], 'stripe:ours': ['GET /v1/ours'] },
  };

  test.each([true, false])('keeps local changes; with the entry stored: %s', async (keptEntry) => {
    await made(OWN, keptEntry ? {} : { entry: null });
    const scopeList = ['stripe:customers.read', 'stripe:payouts.write', 'stripe:ours'];
    await expectStatus(201, ask('POST', '/owner/connections', { platform: 'pay', label: 'pay', secret: CANARY }));
    const agent = await organisation.agent({ rules: [{ effect: 'allow' }], grants: { pay: { scopeList } } });
    expect(await listed()).toMatchObject({ builtin: 'stripe', update_available: true, version: 2 });

    const tried = await expectStatus(200, update(2, true));
    expect(tried.body).toMatchObject({ version: 2, update_available: true });
    expect(tried.body.changes).toContain('refused_headers: none → stripe-account, stripe-context');
    expect(tried.body.changes.join('\n')).toContain('scope stripe:balance.read: added');
    expect(tried.body.changes.join('\n')).not.toMatch(/payouts\.write|stripe:ours|base_url|name/);
    expect(tried.body.warnings).toEqual([
      expect.stringMatching(/^The scope stripe:customers\.read allows GET .* as well, and an agent holds it\.$/),
    ]);
    expect(await events()).toEqual([]);

    const updated = await expectStatus(200, update(2));
    expect(updated.body).toMatchObject({
      version: 3,
      update_available: false,
      name: 'Our shop',
      base_url: OWN.base_url,
    });
    expect(updated.body.changes).toEqual(tried.body.changes);
    const { manifest } = await platform();
    expect(manifest.scopes).toMatchObject(OWN.scopes);
    expect(manifest.refused_headers).toEqual(['stripe-account', 'stripe-context']);
    expect(await listed()).toMatchObject({ update_available: false, version: 3 });
    const [event, ...others] = await events();
    expect(others).toEqual([]);
    expect(event.platform_id).toBe('pay');
    expect(JSON.stringify(event)).toContain('"version":3');
    const call = { platform: 'pay', endpoint: '/v1/payouts', method: 'POST', scope: 'stripe:payouts.write', data: {} };
    const denied = await agent.act(call);
    expect([denied.status, denied.body.reason]).toEqual([403, 'endpoint_scope_mismatch']);
    // A second update changes and records nothing.
    expect((await update(3)).body).toMatchObject({ version: 3, changes: [] });
    expect(await events()).toHaveLength(1);
  });

  test('is refused for a version that is not in force any more, for an own platform, and for an unknown one', async () => {
    await made({});
    const other = await update(7);
    expect([other.status, other.body.version]).toEqual([409, 2]);
    expect((await ask('POST', '/owner/platforms/demo/update', { version: 1 })).body.detail).toContain('not built in');
    const none = await ask('POST', '/owner/platforms/none/update', { version: 1 });
    expect([none.status, none.body.error]).toEqual([404, 'not_found']);
    const blind = await ask('POST', '/owner/platforms/pay/update', {});
    expect([blind.status, blind.text]).toEqual([400, expect.stringContaining('version')]);
    expect((await platform()).version).toBe(2);
  });

  test('when this release no longer accepts the entry, that is reported, and the manifest in force stays', async () => {
    await made({}, { entry: { use: 'stripe', scopes: { 'no scope': ['what'] } } });
    expect(await listed()).toMatchObject({ update_available: true });
    const refused = await update(2);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('entry.scopes')]);
    expect((await platform()).version).toBe(2);
  });

  test('a governance file and the switch for tokens of people keep the entry', async () => {
    const text = JSON.stringify({ platforms: { pay: { use: 'stripe', name: 'Ours', suspended: true } } });
    const { id, ask } = await world.organisation();
    await expectStatus(200, ask('POST', '/owner/governance/apply', { text }));
    const stored = async (platformId: string) =>
      await world.db
        .selectFrom('platform_versions')
        .select('entry')
        .where('organisation_id', '=', id)
        .where('platform_id', '=', platformId)
        .orderBy('version', 'desc')
        .executeTakeFirst();
    expect(JSON.parse((await stored('pay'))?.entry ?? '')).toEqual({ use: 'stripe', name: 'Ours' });
    const mail = { use: 'gmail', auth: { type: 'oauth2', client_id: 'x', issuer: 'https://accounts.google.com' } };
    expect((await ask('POST', '/owner/platforms', { platform: 'mail', entry: mail })).status).toBe(201);
    await expectStatus(200, ask('POST', '/owner/platforms/mail/per-person', { enabled: true }));
    expect(JSON.parse((await stored('mail'))?.entry ?? '')).toEqual({ ...mail, per_person: { enabled: true } });
    expect((await ask('GET', '/owner/platforms/mail')).body.update_available).toBe(false);
  });
});

test.each(['github', 'slack', 'stripe', 'jira', 'kubernetes', 's3', 'linear', 'gmail'] as const)(
  'a manifest of %s from this release is rebuilt exactly from its inferred local changes',
  (use) => {
    const overrides = { base_url: 'https://here.example/api', name: 'Here', trace: true, headers: { 'x-ours': '1' } };
    const manifest = parsePlatformEntry({ use, ...overrides }).data!;
    const entry = newestEntry({ platform_id: 'x', manifest, entry: null });
    expect(parsePlatformEntry(entry).data).toEqual(manifest);
  },
);

test('a stored manifest from before refused parameters counts as older than this release, which adds them', () => {
  const { refused_parameters, ...rest } = parsePlatformEntry({ use: 'slack' }).data!;
  const stored = { platform_id: 'slack', manifest: rest as Manifest, entry: null };
  expect(refused_parameters).toEqual(['token']);
  expect(hasNewerManifest(stored)).toBe(true);
  expect(parsePlatformEntry(newestEntry(stored)!).data?.refused_parameters).toEqual(['token']);
  const { refused_parameters: inQuery, ...before } = parsePlatformEntry({ use: 'github' }).data!;
  expect(manifestDifference(before as Manifest, { ...before, refused_parameters: inQuery } as Manifest)).toEqual([
    'refused_parameters: none → {"name":"client_id","in":"query"}, {"name":"callback","in":"query"}',
  ]);
});

test('whether there is a newer manifest is cached by manifest and entry together', () => {
  const text = JSON.stringify(parsePlatformEntry({ use: 'npm' }).data!);
  const manifest = readManifest({ platform_id: 'one', manifest: text });
  const stored = (entry: object) => ({ platform_id: 'one', manifest, entry: JSON.stringify(entry) });
  for (const [entry, newer] of [
    [{ use: 'npm' }, false],
    [{ use: 'npm', name: 'Ours' }, true],
    [{ use: 'npm' }, false],
  ] as const)
    expect(hasNewerManifest(stored(entry))).toBe(newer);
  // Shared by another platform with the same text, whose errors still name their own platform.
  expect(readManifest({ platform_id: 'other', manifest: text })).toBe(manifest);
  expect(() => readManifest({ platform_id: 'other', manifest: '{' })).toThrow('manifest of other');
});
