/** Platforms on the command line: list, and updates of manifests that an earlier release created. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { listPlatforms } from '../../broker/store/platforms.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { startCliWorld } from '../world/cli-world.ts';
import { actingIn, atTerminal, missingScript } from '../world/terminal.ts';
import { shared } from '../world/world.ts';

describe('platform', () => {
  const cli = shared(() => startCliWorld());

  const listed = async () => (await cli.json('platform', 'list'))[0];
  /** Stores a manifest as an earlier release created it: without masks, and without one scope. */
  const age = () =>
    cli.restart(async () => {
      const store = openSqlite(join(cli.folder, 'data', 'store'));
      try {
        const { organisation_id: of } = await store.db.selectFrom('platforms').selectAll().executeTakeFirstOrThrow();
        const [stored] = await listPlatforms(store.db, of);
        if (stored === undefined) throw new Error('The store has no platform.');
        const { masks: _masks, ...manifest } = JSON.parse(stored.manifest);
        delete manifest.scopes['codehost:gists.read'];
        const { organisation_id: organisationId, platform_id: platformId, entry } = stored;
        await putPlatform(
          store.db,
          { organisationId, platformId, entry, manifest: JSON.stringify(manifest) },
          Date.now(),
        );
      } finally {
        await store.close();
      }
    });

  test('update changes nothing when every manifest is up to date', async () => {
    const { stdout } = await cli.run('platform', 'list');
    expect(stdout).toMatch(/^PLATFORM +NAME +STATE +CONNECTIONS\ncodehost +GitHub +up to date +main\n$/);
    expect((await cli.run('platform', 'update', '--yes')).stdout).toBe(
      'All platforms have the manifests of this release.\n',
    );
    const named = await cli.run('platform', 'update', 'github', '--yes');
    expect([named.code, named.stdout]).toEqual([0, 'codehost has nothing to update to in this release.\n']);
    const unknown = await cli.run('platform', 'update', 'gihtub', '--yes');
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('There is no platform "gihtub"')]);
  });

  test('update is shown by --dry-run, and made only with --yes', async () => {
    await age();
    expect((await cli.run('platform', 'list')).stdout).toMatch(
      /codehost +GitHub +has an update +main\n\nWhat an update changes: .*agent-broker platform update --dry-run\n$/,
    );
    for (const words of [[], ['--json'], ['codehost']]) {
      const { code, stdout, stderr } = await cli.run('platform', 'update', ...words);
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(/add --yes, or --dry-run/)]);
    }
    const { version } = await listed();
    const tried = await cli.run('platform', 'update', '--dry-run');
    expect(tried.code, tried.stderr).toBe(0);
    expect(tried.stdout).toMatch(/^codehost \(GitHub\):\n/);
    expect(tried.stdout).toContain('scope codehost:gists.read: added');
    expect(tried.stdout).toMatch(/^ {2}masks.*temp_clone_token/m);
    expect(actingIn(tried.stdout)).toEqual([]);
    expect(await listed()).toMatchObject({ version, update_available: true });

    const [told] = await cli.json('platform', 'update', '--dry-run');
    expect(told).toMatchObject({ platform_id: 'codehost', version, updated: false });
    const [updated, ...others] = await cli.json('platform', 'update', '--yes');
    expect(updated).toEqual({ ...told, version: version + 1, updated: true });
    expect(others).toEqual([]);
    expect(await listed()).toMatchObject({ version: version + 1, update_available: false });
  });

  test.skipIf(missingScript)('update asks for confirmation at a terminal', async () => {
    await age();
    const { version } = await listed();
    const at = { cwd: cli.folder, env: cli.env };
    const declined = atTerminal(['platform', 'update'], at);
    expect(await declined.shows('Update codehost?')).toContain('scope codehost:gists.read: added');
    declined.type('n\n');
    expect(await declined.ended).toMatchObject({ code: 1, stdout: expect.stringContaining('Not updated: codehost.') });
    expect(await listed()).toMatchObject({ version, update_available: true });
    const accepted = atTerminal(['platform', 'update', 'codehost'], at);
    await accepted.shows('Update codehost?');
    accepted.type('y\n');
    expect(await accepted.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`has version ${version + 1} of its manifest.`),
    });
    expect(await listed()).toMatchObject({ version: version + 1, update_available: false });
  });
});
