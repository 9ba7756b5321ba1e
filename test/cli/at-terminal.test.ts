/** `add` and `connect` in dialogue with a person at a terminal. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { leaksOf } from '../world/canary.ts';
import { runCommand, startServe } from '../world/command.ts';
import { startGitHub } from '../world/servers/github-server.ts';
import { newFolder } from '../world/stores.ts';
import { atTerminal, missingScript } from '../world/terminal.ts';
import { shared } from '../world/world.ts';

/** Runs the command and types each answer once the terminal shows its prompt. */
async function answered(
  words: readonly string[],
  answers: readonly [shows: string, typed: string][],
  setting: Parameters<typeof atTerminal>[1],
): Promise<{ code: number | null; shown: string }> {
  const terminal = atTerminal(words, setting);
  for (const [shows, typed] of answers) {
    await terminal.shows(shows);
    terminal.type(`${typed}\r`);
  }
  const { code, stdout: shown } = await terminal.ended;
  return { code, shown };
}

const TOKEN = 'ghp_CANARYterminal0123456789abcdefgh12345';

describe.skipIf(missingScript)(`at a terminal${missingScript ? ` (skipped: ${missingScript})` : ''}`, () => {
  const folder = newFolder();
  const data = join(folder, 'data');
  const setting = { cwd: folder, env: { AGENT_BROKER_DATA: data, HOME: folder } };
  const github = shared(() => startGitHub(new Map([[TOKEN, 'repo, workflow']])));
  beforeAll(async () => {
    const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: github.address };
    await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
  });

  test('add prompts for the way and the token, which is not shown', async () => {
    const { code, shown } = await answered(
      ['add', 'github', '--base-url', github.api],
      [
        ['1 to 3 [1]:', '1'],
        ['Paste a personal access token (it is not shown):', TOKEN],
      ],
      setting,
    );
    expect(code, shown).toBe(0);
    expect(leaksOf(TOKEN, shown)).toEqual([]);
    expect(shown).toContain('Added codehost');
    expect(shown).toContain('It may do: repo, workflow');
    expect(shown).toContain('Warning: the token has the scope "workflow"');
  });

  test('connect prompts for client, platform, preset, repositories and expiry', async () => {
    const { code, shown } = await answered(
      ['connect'],
      [
        ['1 to 16 [1]:', '3'],
        ['1 to 2 [1]:', '1'],
        ['1 to 6 [1]:', '2'],
        ['Only in these repositories', 'acme/shop, acme/web'],
        ['Until when', ''],
      ],
      setting,
    );
    expect(code, shown).toBe(0);
    expect(shown).toContain('issues: metadata.read');
    expect(shown).toContain('repositories: acme/shop, acme/web; until 20');
    expect(readFileSync(join(folder, '.cursor', 'mcp.json'), 'utf8')).toContain('agent-broker');
    // The entry exists now, so nothing more is asked.
    const again = await answered(['connect'], [['1 to 16 [1]:', '1']], setting);
    expect([again.code, again.shown], again.shown).toEqual([0, expect.stringContaining('Nothing to change')]);
  });

  test('without a terminal, connect lists the clients', async () => {
    const { code, stderr } = await runCommand(['connect'], setting);
    expect([code, stderr]).toEqual([2, expect.stringContaining('The clients are claude-code, ')]);
  });
});
