/** The caller of requests of `agent-broker run`, from its options and environment. */
import { execFile } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { BIN, COMPILE_CACHE } from '../world/checkout.ts';
import { consentVerified } from '../world/mcp/people.ts';
import { confirmAll, consentAsserted } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

describe('agent-broker run for one person', () => {
  const people = givenPeople('sqlite', { organisations: 'one' });
  const { agent, server, act, assertion, connected } = people;
  const profile = shared(async () => ({ file: profileOf(agent) }));
  beforeAll(async () => {
    await connected(slack('U-ANN'), 'ann');
    await connected(slack('U-BOB'), 'bob');
  });
  const asked = 'curl -sS "$AGENT_BROKER_RUN_URL/proxy/main/items" -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY"';
  const start = async (words: string[], env: Record<string, string> = {}, headers: string[] = []) => {
    const command = [asked, ...headers.map((header) => `-H "${header}"`)].join(' ');
    const ended = await run(profile.file, [...words, ...sh(command)], env);
    return { ...ended, body: ended.stdout.startsWith('{') ? JSON.parse(ended.stdout) : undefined };
  };

  test('all requests are for the person that an option or the environment names', async () => {
    expect((await start(['--caller', 'slack:U-ANN'])).body.who).toBe('ann');
    const env = { AGENT_BROKER_CALLER: 'slack:U-BOB' };
    expect((await start([], env)).body.who).toBe('bob');
    expect((await start(['--caller', 'slack:U-ANN'], env)).body.who).toBe('ann');
    // Without a configured caller, the command names it.
    expect((await start([])).body.error).toBe('consent_required');
    expect((await start([], {}, ['X-Svc-Caller: id slack:U-BOB'])).body.who).toBe('bob');
  });

  test('a request for somebody else is refused, and nothing is sent', async () => {
    const words = ['--caller', 'slack:U-ANN'];
    expect((await start(words, {}, ['X-Svc-Caller: id slack:U-ANN'])).body.who).toBe('ann');
    server.bearers.length = 0;
    for (const headers of [
      ['x-svc-caller: id slack:U-BOB'],
      ['X-Svc-Caller: id slack:U-ANN', 'X-Svc-Caller: id slack:U-BOB'],
      ['X-SVC-CALLER: jwt a.b.c'],
    ])
      expect((await start(words, {}, headers)).body).toMatchObject({
        error: 'caller_differs',
        detail: expect.stringContaining('Leave X-Svc-Caller out'),
      });
    expect(server.bearers).toEqual([]);
  });

  test('an assertion is read from its file for each request; an unusable file is reported, without its content', async () => {
    await consentVerified(people, (await act(await assertion('bob'))).body.consent_url, 'bob');
    const file = join(newFolder(), 'assertion');
    writeFileSync(file, `${(await assertion('bob')).assertion}\n`, { mode: 0o600 });
    expect((await start(['--caller-file', file])).body.who).toBe('bob');
    expect((await start([], { AGENT_BROKER_CALLER_FILE: file })).body.who).toBe('bob');
    server.bearers.length = 0;
    chmodSync(file, 0o644);
    const { body } = await start(['--caller-file', file]);
    expect(body).toMatchObject({ error: 'caller_unreadable', detail: expect.stringContaining(`chmod 600 ${file}`) });
    expect(server.bearers).toEqual([]);
  });

  test.each([
    [['--caller', 'U-ANN'], 'write <source>:<id>'],
    [['--caller', 'slack:U\nANN'], 'control character'],
    [['--caller', 'slack:U-ANN', '--caller-file', 'x'], 'leave one of them out'],
  ])('the command is not started with an invalid caller %j', async (words, said) => {
    const ended = await start(words as string[]);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(said);
  });

  describe('request-consent, before the run', () => {
    /** `told`: gets the output as it is written. */
    const ask = (words: string[], env: Record<string, string> = {}, told = (_text: string) => {}) =>
      new Promise<{ code: unknown; stdout: string; stderr: string }>((done) =>
        execFile(
          process.execPath,
          [BIN, 'request-consent', ...words, '--profile', profile.file],
          {
            cwd: newFolder(),
            env: { PATH: process.env.PATH ?? '', HOME: newFolder(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
          },
          (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }),
        ).stdout?.on('data', told),
      );

    test('prints the link with which the person connects, and the run then works', async () => {
      const words = ['--caller', 'slack:U-EVE'];
      expect((await start(words)).body.error).toBe('consent_required');
      const asked = await ask(['docs', ...words]);
      expect([asked.code, asked.stdout], asked.stderr).toEqual([
        0,
        expect.stringMatching(/^Open this as the person, until .*:\nhttp:\S+\/me\/consent\/cns_\S+\n$/),
      ]);
      const [, url = ''] = asked.stdout.trim().split('\n');
      // Asked again while the link is valid, it is the same one.
      const pending = await ask(['docs', '--wait', '1', '--json'], { AGENT_BROKER_CALLER: 'slack:U-EVE' });
      expect([pending.code, JSON.parse(pending.stdout)]).toEqual([
        1,
        { status: 'pending', consent_url: url, expires_at: expect.stringMatching(/Z$/) },
      ]);
      const printed = Promise.withResolvers<string>();
      const waiting = ask(['docs', ...words, '--connection', 'main', '--wait', '60'], {}, printed.resolve);
      expect(await printed.promise).toContain(`${url}\n`);
      await consentAsserted(server, url, 'eve');
      await confirmAll(people.organisation);
      expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringContaining('The person has consented.') });
      expect((await start(words)).body.who).toBe('eve');
    });

    test.each([
      [['docs'], 2, 'Name the person with --caller'],
      [['docs', '--caller', 'U-EVE'], 2, 'write <source>:<id>'],
      [['docs', '--caller', 'teams:U-EVE'], 1, 'does not accept this source'],
      [['docs', '--caller', 'slack:U-EVE', '--connection', 'other'], 1, 'Its connections there: main'],
      [['nothing', '--caller', 'slack:U-EVE'], 1, 'The organisation has no platform "nothing"'],
      [['nothing', '--caller', 'slack:U-EVE', '--connection', 'main'], 1, 'Its platforms: docs.'],
    ])('%j is refused with the reason', async (words, code, said) => {
      const ended = await ask(words);
      expect([ended.code, ended.stdout]).toEqual([code, '']);
      expect(ended.stderr).toContain(said);
    });
  });

  test('the command’s environment contains nothing about the person', async () => {
    const ended = await run(profile.file, ['--caller', 'slack:CANARY-ann', ...sh('env')], {
      AGENT_BROKER_CALLER: 'slack:CANARY-bob',
    });
    expect(ended.stdout).not.toContain('CANARY');
  });
});
