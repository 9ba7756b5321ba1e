import type { Command } from 'commander';
import { print } from '../connection.ts';
import type { GitSetupOptions } from '../git/setup.ts';

export function addGitSetupCommand(program: Command): void {
  program
    .command('git-setup')
    .description(
      'configure git on this machine to reach repositories through the broker, as an agent and without a token in any file',
    )
    .argument('[repositories...]', 'owner/repo or owner/*; default: every repository of the host')
    .option('--local', 'only for the clone in this folder')
    .option('--host <url>', 'the code host whose URLs are rewritten', 'https://github.com')
    .option('--connection <label>', 'the connection to use, if the agent has several')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--dry-run', 'only show what would be done')
    .option('--undo', 'remove the settings')
    .option('--json', 'print JSON')
    .action(async (repositories: string[], options: GitSetupOptions & { json?: boolean }) => {
      const { gitSetup, describeGitSetup } = await import('../git/setup.ts');
      const done = await gitSetup(repositories, options);
      print(options, done, () => describeGitSetup(done));
    });
}
