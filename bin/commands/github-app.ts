import type { Command } from 'commander';
import { print } from '../connection.ts';
import type { GitHubAppOptions } from '../github-app.ts';

export function addGitHubAppCommand(program: Command): void {
  program
    .command('github-app')
    .description('make a GitHub App for the broker in a browser, or take one, and show what the governance file needs')
    .option('--org <name>', 'the organisation that owns the App; otherwise whoever is signed in')
    .option('--name <name>', 'what it is called, at most 34 characters; otherwise after this machine')
    .option(
      '--scopes <scope,…>',
      'the scopes that agents will use, of which it gets the permissions; otherwise those of code, issues and pull requests',
    )
    .option('--host <url>', 'the GitHub', 'https://github.com')
    .option('--app-id <id>', 'an App that is there: its id or client id, with --key-file')
    .option('--key-file <file>', 'where its private key goes, or is; otherwise github-app.pem here')
    .option('--no-wait', 'do not wait until it is installed')
    .option('--json', 'print JSON')
    .action(async (options: GitHubAppOptions & { json?: boolean }) => {
      const { gitHubApp } = await import('../github-app.ts');
      const { inWords } = await import('../github-app-result.ts');
      const result = await gitHubApp(options, (text) => process.stderr.write(`${text}\n`));
      print(options, result, () => inWords(result));
    });
}
