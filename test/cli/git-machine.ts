/** A machine of one agent, with git and no other configuration of it. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeKeyPair } from '../world/agent.ts';
import type { commandHost, Ran } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';

const OWNER = '0b0f5a0e-0000-4000-8000-000000000001';
const privateKey = makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' });

export type GitMachine = {
  home: string;
  /** The profile's file. */
  profile: string;
  env: Record<string, string>;
  setup(...words: string[]): Promise<Ran>;
  /** The configuration of git. */
  config(): string;
  configure(text: string): void;
  /** Another profile of this machine. */
  profileOf(agentId: string, url?: string): string;
  /** What git would send to an address. */
  credentialFor(url: string): { password?: string; username?: string };
  /** Where git would go for an address. */
  rewritten(url: string): string;
};

/** `url`: of the broker. `hosted`: runs our commands. The agent is `agt_1`. */
export function newGitMachine(url: string, hosted: ReturnType<typeof commandHost>): GitMachine {
  const home = newFolder();
  const file = join(home, '.gitconfig');
  const profileOf = (agentId: string, at = url) => {
    const path = join(home, `${agentId}'s profile.json`);
    const content = { url: at, agent_id: agentId, owner_id: OWNER, private_key: privateKey };
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
    return path;
  };
  const profile = profileOf('agt_1');
  const env = { HOME: home, AGENT_BROKER_PROFILE: profile, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };
  const git = (words: string[], input?: string) =>
    spawnSync('git', words, { input, env: { ...process.env, ...env }, encoding: 'utf8' }).stdout;
  return {
    home,
    profile,
    env,
    setup: (...words) => hosted(['git-setup', ...words], { cwd: home, env }),
    config: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
    configure: (text) => writeFileSync(file, text),
    profileOf,
    credentialFor: (asked) => {
      const lines = git(['credential', 'fill'], `url=${asked}\n\n`).split('\n');
      return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)));
    },
    rewritten: (asked) => git(['ls-remote', '--get-url', asked]).trim(),
  };
}
