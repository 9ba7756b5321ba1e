/** A broker with a code host, and git as agents run it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { github } from '../../broker/platforms/builtin/github.ts';
import type { TestAgent } from './agent.ts';
import { GIT_ENVIRONMENT, type GitHost, startGitHost } from './servers/git-host.ts';
import { newFolder, type StoreKind } from './stores.ts';
import { ALLOW_ALL, CANARY, type Organisation, startWorld, type World } from './world.ts';

export type GitWorld = {
  world: World;
  host: GitHost;
  organisation: Organisation;
  /** Creates an agent that may read and write every repository, or according to `constraints`, `scopes` and `rules`. */
  agent(options?: {
    scopes?: string[];
    constraints?: Record<string, unknown>;
    rules?: readonly unknown[];
    requireApproval?: boolean;
  }): Promise<TestAgent>;
};

export const GIT_SCOPES = ['codehost:contents.read', 'codehost:contents.write'];

/** `fields`: fields of the platform's manifest, beside those of the built-in GitHub. */
export async function startGitWorld(
  store: StoreKind,
  environment: Record<string, string> = {},
  fields: object = {},
): Promise<GitWorld> {
  const host = await startGitHost({ secret: CANARY });
  const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: host.address, ...environment });
  const organisation = await world.organisation();
  const manifest = { ...github, base_url: host.url, git_base_url: host.url, ...fields };
  await organisation.platform({ id: 'codehost', manifest });
  return {
    world,
    host,
    organisation,
    agent: ({ scopes = GIT_SCOPES, constraints = {}, rules = ALLOW_ALL, requireApproval = false } = {}) =>
      organisation.agent({
        rules,
        grants: {
          codehost: {
            scopeList: scopes,
            constraints: JSON.stringify(constraints),
            require_approval: requireApproval ? 1 : 0,
          },
        },
      }),
  };
}

export type GitRun = { code: number; stdout: string; stderr: string };

/** Runs git with the agent's token, in a folder of its own unless `folder` is given. Does not reject when git fails. */
export function runGit(
  args: readonly string[],
  { folder = newFolder(), config = {}, environment = {} }: RunOptions = {},
): Promise<GitRun> {
  const settings = Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return new Promise((resolve) => {
    execFile(
      'git',
      [...settings, ...args],
      {
        cwd: folder,
        env: { ...GIT_ENVIRONMENT, ...environment },
        encoding: 'utf8',
        timeout: 60_000,
        maxBuffer: 16 * 1024 * 1024,
      },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

export type RunOptions = { folder?: string; config?: Record<string, string>; environment?: Record<string, string> };

/** Returns the address of a repository for an agent, with its token. */
export function remoteOf(agent: TestAgent, repository: string, { user = 'x' } = {}): string {
  return `${agent.baseUrl.replace('//', `//${user}:${agent.token()}@`)}/git/${repository}`;
}

/** Clones, and returns the folder. Throws git's output when it fails. */
export async function clone(agent: TestAgent, repository: string, ...args: string[]): Promise<string> {
  const folder = join(newFolder(), 'work');
  const run = await runGit(['clone', '-q', ...args, remoteOf(agent, repository), folder]);
  if (run.code !== 0) throw new Error(`git clone failed: ${run.stderr}`);
  return folder;
}
