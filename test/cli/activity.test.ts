/** The `activity` commands: audit rows in words, filters, export, and following across a restart of the broker. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { BIN } from '../world/checkout.ts';
import { startCliWorld } from '../world/cli-world.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';
import { actingIn } from '../world/terminal.ts';
import { shared } from '../world/world.ts';

const cli = shared(() => startCliWorld());
beforeAll(async () => {
  await cli.agent('clerk');
  await cli.agent('reader');
  await cli.act('clerk', {});
  await cli.act('reader', { method: 'DELETE', endpoint: '/repos/acme/shop/issues/1', scope: 'codehost:issues.read' });
  const id = await cli.hold('clerk', { reason: 'because \u001b[2J\u202e' });
  await cli.run('approve', id, '--yes');
});

const lines = async (...words: string[]) => {
  const { code, stdout, stderr } = await cli.run('activity', ...words);
  expect(code, stderr).toBe(0);
  expect(actingIn(stdout)).toEqual([]);
  return stdout.trimEnd().split('\n');
};

describe('activity', () => {
  test('prints when, result, agent, action and reason of each row, newest last', async () => {
    const shown = await lines();
    const moment = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d[+-]\\d\\d:\\d\\d';
    const found = [
      `Allowed +clerk .+ on GitHub: a rule allows it`,
      `Refused +reader .+ on GitHub: its policy denies it`,
      `Held +clerk .+ on GitHub: its policy requires an approval`,
      `Approved +clerk .+ on GitHub, by owner@`,
      `Allowed +clerk .+ on GitHub: approved by owner@`,
    ].map((words) => shown.findIndex((each) => new RegExp(`^${moment}  ${words}`).test(each)));
    expect(found, shown.join('\n')).not.toContain(-1);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
  });

  test('a change of owners names the owner', async () => {
    const { body } = await cli.owner('POST', '/owner/owners', { email: 'rob@acme.example', role: 'viewer' });
    await cli.owner('DELETE', `/owner/owners/${body.id}`);
    const shown = await lines('--result', 'change', '--limit', '2');
    expect(shown.map((each) => each.replace(/^.* Change +/, ''))).toEqual([
      expect.stringMatching(/^owner added: rob@acme\.example, by owner@/),
      expect.stringMatching(/^owner removed: rob@acme\.example, by owner@/),
    ]);
  });

  test('a row of a malformed call prints what is known of the call', async () => {
    await cli.act('reader', { endpoint: '/%zz' });
    await cli.act('reader', { method: 'SEND' });
    const shown = (await lines('--agent', 'reader')).slice(-2).map((each) => each.slice(each.indexOf('reader')));
    expect(shown).toEqual([
      'reader GET on GitHub: invalid endpoint',
      'reader a call that was not read on GitHub: invalid request',
    ]);
  });

  test('filters select rows, and no match prints a sentence', async () => {
    expect((await lines('--agent', 'reader', '--result', 'denied')).length).toBe(1);
    expect((await lines('--limit', '2')).length).toBe(2);
    expect(
      (await lines('--result', 'change', '--since', '1h')).every((each) => !each.includes('a rule allows it')),
    ).toBe(true);
    expect(await lines('--platform', 'none')).toEqual(['No rows match.']);
    expect(await lines('--since', '2200-01-01T00:00:00Z')).toEqual(['No rows match.']);
    const wrong = await cli.run('activity', '--agent', 'clrek');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Did you mean "clerk"?')]);
    expect((await cli.run('activity', '--since', 'yesterday')).code).toBe(2);
  });

  test('export writes rows with receipts as JSON, or a table as CSV, by the same filters; --text searches', async () => {
    expect((await lines('--text', 'because')).length).toBeGreaterThan(0);
    const all = await cli.run('activity', 'export', '--agent', 'clerk');
    const rows = all.stdout
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each));
    expect(rows.length).toBeGreaterThan(2);
    expect(rows.every(({ receipt }) => receipt.split('.').length === 3)).toBe(true);
    expect((await cli.run('activity', 'export', '--agent', 'clerk', '--output', '-')).stdout).toBe(all.stdout);
    const file = join(newFolder(), 'activity.csv');
    const { code, stdout, stderr } = await cli.run(
      'activity',
      'export',
      '--format',
      'csv',
      '--output',
      file,
      '--result',
      'denied',
    );
    expect([code, stdout], stderr).toEqual([0, '']);
    const [head, row, ...more] = readFileSync(file, 'utf8').split('\r\n');
    expect([head?.split(',')[0], row?.includes('reader'), more]).toEqual(['created_at', true, ['']]);
    const wrong = await cli.run('activity', 'export', '--agent', 'clrek', '--output', file);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Did you mean "clerk"?')]);
    expect((await cli.run('activity', 'export', '--format', 'xml')).code).toBe(2);
    for (const option of [['--limit', '5'], ['--follow']])
      expect(await cli.run('activity', 'export', ...option)).toEqual({
        code: 2,
        stdout: '',
        stderr: `An export has all matching rows: leave out ${option[0]}, or select fewer, such as with --since.\n`,
      });
    for (const folder of [file, join(cli.folder, 'none')])
      expect(await cli.run('activity', 'export', '--output', join(folder, 'all.jsonl'))).toEqual({
        code: 1,
        stdout: '',
        stderr: `There is no folder ${folder}. Create it, or name a file in another one.\n`,
      });
  });

  test('--json prints one row per line, oldest first', async () => {
    const rows = (await lines('--json', '--limit', '5')).map((each) => JSON.parse(each));
    expect(rows).toHaveLength(5);
    expect(rows.map(({ created_at }) => created_at)).toEqual(rows.map(({ created_at }) => created_at).toSorted());
  });
});

describe('activity --follow', () => {
  type Following = {
    child: ChildProcess;
    /** Complete lines printed so far. */
    lines: () => string[];
    rows: () => { id: string; path: string }[];
    errors: () => string;
    ended: Promise<number | null>;
  };
  function follow(...words: string[]): Following {
    const child = spawn(process.execPath, [BIN, 'activity', '--follow', ...words], {
      cwd: cli.folder,
      env: { PATH: process.env.PATH!, ...cli.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    afterFile(() => {
      if (child.exitCode === null) child.kill('SIGKILL');
    });
    let [output, errors] = ['', ''];
    child.stdout!.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr!.on('data', (chunk) => {
      errors += chunk;
    });
    const printed = () => output.split('\n').slice(0, -1);
    return {
      child,
      lines: printed,
      rows: () => printed().map((each) => JSON.parse(each)),
      errors: () => errors,
      ended: new Promise((done) => child.once('close', done)),
    };
  }
  const paths = (following: Following) => following.rows().map(({ path }) => path);

  test('continues after a restart of the broker without losing or repeating a row, and exits 0 on SIGINT', async () => {
    const following = follow('--json', '--agent', 'clerk', '--limit', '1');
    await expect.poll(() => following.rows().length).toBe(1);
    await cli.act('clerk', { endpoint: '/repos/acme/shop/issues/2' });
    await expect.poll(() => paths(following)).toContain('/repos/acme/shop/issues/2');
    // The last row before the broker stops: it may not be printed yet.
    await cli.act('clerk', { endpoint: '/repos/acme/shop/issues/3' });
    await cli.restart(async () => {
      await expect.poll(following.errors).toContain('does not answer');
    });
    await cli.act('clerk', { endpoint: '/repos/acme/shop/issues/4' });
    await expect.poll(() => paths(following)).toContain('/repos/acme/shop/issues/4');
    expect(following.errors()).toContain('answers again');
    // A slow call is printed once, after it ends, even when later calls ended before.
    let answer = () => {};
    cli.upstream.answer = (_request, response) => {
      cli.upstream.answer = undefined;
      answer = () => response.end('{}');
    };
    const slow = cli.act('clerk', { endpoint: '/repos/acme/shop/issues/5' });
    await expect.poll(() => cli.upstream.seen.at(-1)!.target).toContain('/issues/5');
    await cli.act('clerk', { endpoint: '/repos/acme/shop/issues/6' });
    await expect.poll(() => paths(following)).toContain('/repos/acme/shop/issues/6');
    expect(paths(following)).not.toContain('/repos/acme/shop/issues/5');
    answer();
    await slow;
    await expect.poll(() => paths(following), { timeout: 20_000 }).toContain('/repos/acme/shop/issues/5');
    following.child.kill('SIGINT');
    expect(await following.ended).toBe(0);
    const { stdout } = await cli.run('activity', '--agent', 'clerk', '--json');
    const all = stdout
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each).id as string);
    const since = all.slice(all.indexOf(following.rows()[0]!.id));
    expect(
      following
        .rows()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(since.toSorted());
  });

  test('without --json prints the lines of activity, with control characters of agents escaped', async () => {
    const following = follow('--agent', 'clerk', '--limit', '1');
    await expect.poll(() => following.lines().length).toBe(1);
    await cli.act('clerk', { endpoint: '/repos/acme/shop/issues/7' });
    await cli.hold('clerk', { data: { title: 'Ends \u001b[31mred\u202e' } });
    await expect.poll(() => following.lines().length).toBe(3);
    following.child.kill('SIGINT');
    expect(await following.ended).toBe(0);
    const [, read, held] = following.lines();
    expect(read).toMatch(/ Allowed +clerk /);
    expect(held).toMatch(/ Held +clerk asked to create an issue in acme\/shop/);
    expect(following.lines().join('\n')).not.toMatch(/[\u001b\u202e]/);
    expect(await lines('--agent', 'clerk', '--limit', '2')).toEqual([read, held]);
  });

  test('exits 0 without an error when its reader closes the pipe', async () => {
    const following = follow('--limit', '3');
    await expect.poll(() => following.lines().length).toBe(3);
    following.child.stdout!.destroy();
    await cli.act('clerk', {});
    expect(await following.ended).toBe(0);
    expect(following.errors()).toBe('');
  });
});
