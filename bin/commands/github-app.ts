import type { Command } from 'commander';
import { print } from '../connection.ts';
import type { GitHubAppOptions } from '../github-app/github-app.ts';

export function addGitHubAppCommand(program: Command): void {
  program
    .command('github-app')
    .description(
      'create a GitHub App for the broker in a browser, or use an existing one, and print the lines for the governance file',
    )
    .option('--org <name>', 'the organisation that owns the App; default: the signed-in user')
    .option('--name <name>', 'name of the App, at most 34 characters; default: from this machine')
    .option(
      '--scopes <scope,…>',
      'the scopes that agents will use, of which it gets the permissions; otherwise those of code, issues and pull requests',
    )
    .option('--host <url>', 'the GitHub', 'https://github.com')
    .option('--app-id <id>', 'an existing App: its id or client id, with --key-file')
    .option('--key-file <file>', 'file of its private key, created or existing; default: github-app.pem here')
    .option('--no-wait', 'do not wait until it is installed')
    .option('--json', 'print JSON')
    .action(async (options: GitHubAppOptions & { json?: boolean }) => {
      const { gitHubApp } = await import('../github-app/github-app.ts');
      const { describeGitHubApp } = await import('../github-app/result.ts');
      const result = await gitHubApp(options, (text) => process.stderr.write(`${text}\n`));
      print(options, result, () => describeGitHubApp(result));
    });
}
