/** A broker with several organisations, as its operator makes and uses them on the command line. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startCliWorld } from '../world/cli-world.ts';
import { shared } from '../world/world.ts';

const BETA = ['--organisation', 'Beta Ltd'];
const cli = shared(() => startCliWorld());

const good = async (...words: string[]) => {
  const { code, stdout, stderr } = await cli.run(...words);
  expect(code, stderr).toBe(0);
  return stdout;
};
const bad = async (...words: string[]) => {
  const { code, stdout, stderr } = await cli.run(...words);
  expect(stdout).toBe('');
  return `${code} ${stderr}`;
};

describe('agent-broker organisation', () => {
  test('adds an organisation, whose admin and agents see nothing of the others', async () => {
    await cli.agent('of-acme');
    expect(await good('organisation', 'list')).toMatch(/^acme {2}[0-9a-f-]{36}\n$/);
    expect(await good('organisation', 'add', 'Beta Ltd', '--admin', 'Eve@beta.example')).toBe(
      "Beta Ltd is an organisation. Its admin eve@beta.example signs in with: npx agent-broker owner link --email eve@beta.example --organisation 'Beta Ltd'\n",
    );
    expect((await cli.json('organisation', 'list')).map(({ name }: { name: string }) => name)).toEqual([
      'acme',
      'Beta Ltd',
    ]);

    expect(await good('owner', 'list', ...BETA)).toMatch(/^eve@beta\.example {2}admin {2}\S+\n$/);
    expect(await cli.json('policy', 'list', ...BETA)).toMatchObject([{ name: 'default' }]);
    expect(await cli.json('agent', 'list', ...BETA)).toEqual([]);
    expect((await cli.json('agent', 'list', '--organisation', 'acme')).length).toBe(1);
    // An address names the owner's organisation as well.
    expect(await cli.json('agent', 'list', '--email', 'eve@beta.example')).toEqual([]);
    const file = join(cli.folder, 'beta.yaml');
    writeFileSync(file, 'policies:\n  careful:\n    rules: [{ effect: deny }]\n');
    expect(await good('apply', file, ...BETA)).toContain('careful');
    expect(await cli.json('policy', 'list', '--organisation', 'acme')).toHaveLength(2);

    expect(await good('activity', ...BETA, '--json')).toContain('organisation_created');
    expect(await good('activity', ...BETA)).toContain('organisation created, by the operator');
    const link = (await good('owner', 'link', '--email', 'eve@beta.example', ...BETA)).trim();
    expect(link).toMatch(/^http/);
  });

  test('closes one, after asking', async () => {
    await good('organisation', 'add', 'Gamma', '--admin', 'gil@gamma.example');
    const file = join(cli.folder, 'gamma.yaml');
    writeFileSync(file, 'connections: {}\n');
    await good('apply', file, '--organisation', 'Gamma');
    expect(await bad('organisation', 'close', 'Gamma')).toMatch(/^2 .*add --yes/);
    expect(await bad('organisation', 'close', 'Nobody', '--yes')).toMatch(/^1 .*organisation list/);
    expect(await bad('organisation', 'close', 'acme', '--yes')).toMatch(/^1 .*acme is the oldest organisation/);
    expect(await good('organisation', 'close', 'Gamma', '--yes')).toBe(
      'Gamma is closed. Its owners can still read its record.\n',
    );
    expect(await good('organisation', 'list')).toMatch(/^Gamma {2}[0-9a-f-]{36} {2}closed$/m);
    expect(await good('activity', '--organisation', 'Gamma')).toContain('organisation closed, by the operator');
    expect(await bad('apply', file, '--organisation', 'Gamma')).toMatch(/^1 .*needs the role admin; yours is viewer/);
    const again = ['owner', 'add', 'gil@gamma.example', '--role', 'admin', '--organisation', 'Gamma'];
    expect(await good(...again)).toContain('admin');
    await good('apply', file, '--organisation', 'Gamma');
  });

  test('an id means the same organisation when another one has taken the former name', async () => {
    const [acme] = await cli.json('organisation', 'list');
    const rename = async (organisation: string, name: string) => {
      const file = join(cli.folder, 'name.yaml');
      writeFileSync(file, `organisation: ${name}\n`);
      await good('apply', file, '--organisation', organisation);
    };
    await rename('acme', 'Acme Group');
    await rename('Beta Ltd', 'acme');
    expect(await cli.json('agent', 'list', '--organisation', 'acme')).toEqual([]);
    for (const id of [acme.id, acme.id.toUpperCase()])
      expect(await cli.json('agent', 'list', '--organisation', id)).toHaveLength(1);
    await rename('acme', acme.id);
    expect(await cli.json('agent', 'list', '--organisation', acme.id)).toHaveLength(1);
    await rename('Acme Group', 'acme');
    const named = (name: string) => (one: { name: string }) => one.name === name;
    const { id } = (await cli.json('organisation', 'list')).find(named(acme.id));
    await rename(id, 'Beta Ltd');
  });

  test('a command that could mean either organisation asks for one', async () => {
    for (const words of [
      ['agent', 'list'],
      ['owner', 'token'],
      ['plan', 'governance.yaml'],
    ])
      expect(await bad(...words)).toMatch(/^1 .*There are several organisations: name one with --organisation/);
    expect(await bad('agent', 'list', '--organisation', 'elsewhere')).toMatch(/^1 .*organisation list/);
  });

  test('a person in both acts in the one that is named, and nowhere without a name', async () => {
    expect(await good('owner', 'add', 'eve@beta.example', '--role', 'viewer', '--organisation', 'acme')).toContain(
      'Sign in with: npx agent-broker owner link --email eve@beta.example --organisation acme',
    );
    const roleIn = async (...words: string[]) =>
      (await cli.json('owner', 'token', '--email', 'eve@beta.example', ...words)).role;
    const file = join(cli.folder, 'eve.yaml');
    writeFileSync(file, 'connections: {}\n');
    for (const words of [
      ['owner', 'token'],
      ['owner', 'link'],
      ['plan', file],
    ])
      expect(await bad(...words, '--email', 'eve@beta.example')).toMatch(
        /^1 .*is an owner of several organisations: name one with --organisation/,
      );
    expect(await roleIn('--organisation', 'acme')).toBe('viewer');
    expect(await roleIn(...BETA)).toBe('admin');
    expect(await bad('owner', 'token', '--email', 'zoe@beta.example', ...BETA)).toContain(
      'owner add zoe@beta.example --role admin --organisation "Beta Ltd"',
    );
  });

  test('a name is used once, and a wrong one or address is refused', async () => {
    expect(await bad('organisation', 'add', 'Beta Ltd', '--admin', 'eve@beta.example')).toContain(
      'There is an organisation "Beta Ltd" already; choose another name.',
    );
    expect(await bad('organisation', 'add', ' ', '--admin', 'eve@beta.example')).toMatch(/^1 .*name/);
    expect(await bad('organisation', 'add', 'Epsilon', '--admin', 'eve')).toMatch(
      /^1 .*admin: write an e-mail address/,
    );
    expect(await bad('organisation', 'add', 'Epsilon')).toMatch(/^2 .*--admin/);
    const atOnce = await Promise.all(
      ['a', 'b', 'c'].map((one) => cli.runApart('organisation', 'add', 'Delta', '--admin', `${one}@delta.example`)),
    );
    expect(atOnce.map(({ code }) => code).toSorted()).toEqual([0, 1, 1]);
    expect(await cli.json('organisation', 'list')).toHaveLength(4);
  });

  test('the suggested sign-in is one at the same broker, and closing names the organisation that an id means', async () => {
    const data = join(cli.folder, 'data');
    const elsewhere = ['--data', data];
    expect(await good('organisation', 'add', 'Zeta', '--admin', 'dan@zeta.example', ...elsewhere)).toContain(
      `owner link --email dan@zeta.example --organisation Zeta --data ${data}\n`,
    );
    const added = await good(
      'owner',
      'add',
      'dora@zeta.example',
      '--role',
      'viewer',
      '--organisation',
      'Zeta',
      ...elsewhere,
    );
    expect(added).toContain(`owner link --email dora@zeta.example --organisation Zeta --data ${data}\n`);
    const { id } = (await cli.json('organisation', 'list')).find(({ name }: { name: string }) => name === 'Zeta');
    expect(await cli.json('organisation', 'close', id, '--yes')).toEqual({ id, name: 'Zeta', closed: true });
  });

  test('no owner may list or add organisations', async () => {
    for (const method of ['GET', 'POST'])
      expect((await cli.owner(method, '/owner/organisations')).status, method).toBe(401);
  });
});
