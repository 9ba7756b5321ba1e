import type { Command } from 'commander';
import { print } from '../connection.ts';
import type { GitSetupOptions } from '../git-setup.ts';

export function addGitSetupCommand(program: Command): void {
  program
    .command('git-setup')
    .description(
      'have git on this machine reach repositories through the broker, as an agent and without a token in any file',
    )
    .argument('[repositories...]', 'owner/repo or owner/*; otherwise every repository of the host')
    .option('--local', 'for the clone in this folder alone')
    .option('--host <url>', 'the code host whose addresses are rewritten', 'https://github.com')
    .option('--connection <label>', 'the connection to use, where the agent has several')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--dry-run', 'only say what would be done')
    .option('--undo', 'take the settings out again')
    .option('--json', 'print JSON')
    .action(async (repositories: string[], options: GitSetupOptions & { json?: boolean }) => {
      const { gitSetup, inWords } = await import('../git-setup.ts');
      const done = await gitSetup(repositories, options);
      print(options, done, () => inWords(done));
    });
}
