/** A machine of one agent, with git and no other git configuration. */
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
  /** The path of the profile. */
  profile: string;
  env: Record<string, string>;
  setup(...words: string[]): Promise<Ran>;
  /** Returns the text of the global git configuration; empty when there is none. */
  config(): string;
  configure(text: string): void;
  /** Writes another profile on this machine; returns its path. */
  profileOf(agentId: string, url?: string): string;
  /** Returns the credential that git would send to a URL. */
  credentialFor(url: string): { password?: string; username?: string };
  /** Returns the URL that git would use for a URL. */
  rewritten(url: string): string;
};

/** `url`: the broker's address. `hosted`: runs commands of agent-broker. The agent is `agt_1`. */
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
