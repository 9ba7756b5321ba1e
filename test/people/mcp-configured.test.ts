/** The configured caller of `agent-broker mcp`, from its options and environment. */
import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { BIN } from '../world/checkout.ts';
import { BARE } from '../world/mcp/mcp.ts';
import { consentVerified, STDIO } from '../world/mcp/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { newFolder } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');
const READ = { platform: 'docs', scope: 'docs:read', endpoint: '/items' };

describe('agent-broker mcp for one person', () => {
  const people = givenPeople('sqlite', { organisations: 'one' });
  const { server, issuer, world, organisation, act, assertion, connected } = people;
  beforeAll(async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
  });

  test('calls without a caller are for the configured one, and calls for somebody else are refused', async () => {
    const call = await STDIO(world, organisation, { words: ['--caller', 'slack:U-ANN'] });
    expect((await call('read_platform', READ)).data.who).toBe('ann');
    expect((await call('read_platform', { ...READ, caller: ANN })).data.who).toBe('ann');
    const sent = server.bearers.length;
    for (const caller of [BOB, slack('u-ann'), await assertion('ann')])
      expect(await call('read_platform', { ...READ, caller })).toMatchObject({
        status: 'failed',
        code: 'caller_differs',
        next: expect.stringContaining('Leave caller out'),
      });
    expect(server.bearers).toHaveLength(sent);
  });

  test('the environment can configure a caller, too, and an option takes precedence', async () => {
    const environment = { AGENT_BROKER_CALLER: 'slack:U-BOB' };
    const call = await STDIO(world, organisation, { environment });
    expect((await call('read_platform', READ)).data.who).toBe('bob');
    const other = await STDIO(world, organisation, { environment, words: ['--caller', 'slack:U-ANN'] });
    expect((await other('read_platform', READ)).data.who).toBe('ann');
  });

  test('an assertion is read from its file for each call; an unusable file is reported, without its content', async () => {
    for (const person of ['ann', 'bob'])
      await consentVerified(people, (await act(await assertion(person))).body.consent_url, person);
    const file = join(newFolder(), 'assertion');
    const write = (text: string) => writeFileSync(file, text, { mode: 0o600 });
    const call = await STDIO(world, organisation, { environment: { AGENT_BROKER_CALLER_FILE: file } });
    const who = async (person: string) => {
      write(`${(await assertion(person)).assertion}\n`);
      return (await call('read_platform', READ)).data?.who;
    };
    expect([await who('ann'), await who('bob'), await who('ann')]).toEqual(['ann', 'bob', 'ann']);
    expect((await call('read_platform', { ...READ, caller: await assertion('ann') })).data.who).toBe('ann');
    expect(await call('read_platform', { ...READ, caller: await assertion('bob') })).toMatchObject({
      code: 'caller_differs',
    });

    const iat = Math.floor(Date.now() / 1000) - 600;
    write(await issuer.assertion('ann', { iat, exp: iat + 300 }));
    const over = await call('read_platform', READ);
    expect(over).toMatchObject({ status: 'not_ready', code: 'consent_required' });
    expect(over.detail).toContain('The assertion has expired');

    const unreadable = async (words: string) => {
      const answer = await call('read_platform', READ);
      expect(answer).toMatchObject({ status: 'failed', code: 'caller_unreadable' });
      expect(answer.detail).toContain(words);
      expect(JSON.stringify(answer)).not.toContain('CANARY');
    };
    write('CANARY is no assertion');
    await unreadable('holds no assertion');
    write('CANARY.');
    chmodSync(file, 0o644);
    await unreadable(`chmod 600 ${file}`);
    rmSync(file);
    await unreadable('cannot be read (ENOENT)');
  });
});

describe('agent-broker mcp', () => {
  test.each<[string, string[], Record<string, string>, string]>([
    ['without a source', ['--caller', 'U-ANN'], {}, '--caller: write <source>:<id>'],
    ['with a source that is none', ['--caller', 'Slack:U-ANN'], {}, '--caller: write <source>:<id>'],
    ['without an id', [], { AGENT_BROKER_CALLER: 'slack:' }, 'AGENT_BROKER_CALLER: write <source>:<id>'],
    ['with an id of 257 characters', ['--caller', `slack:${'x'.repeat(257)}`], {}, '--caller: write'],
    ['that is an assertion', ['--caller', 'CANARY.x.y'], {}, 'An assertion is a secret: write it to a file'],
    ['twice', ['--caller', 'slack:U1', '--caller-file', 'x'], {}, '--caller and --caller-file name a caller each'],
    ['twice', [], { AGENT_BROKER_CALLER: 'slack:U1', AGENT_BROKER_CALLER_FILE: 'x' }, 'name a caller each'],
  ])('a caller %s is refused at the start', (_how, words, environment, said) => {
    const ended = spawnSync(process.execPath, [BIN, 'mcp', '--profile', 'none.json', ...words], {
      env: { ...BARE, ...environment },
      encoding: 'utf8',
      input: '',
    });
    expect([ended.status, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(said);
    expect(ended.stderr).not.toContain('CANARY');
  });
});
