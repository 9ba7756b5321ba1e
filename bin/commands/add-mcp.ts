import type { Command } from 'commander';
import type { AddedMcp, AddMcpOptions } from '../add-mcp.ts';
import { commandWith } from '../command-with.ts';
import { print, withConnection } from '../connection.ts';

export function addAddMcpCommand(program: Command): void {
  withConnection(
    program
      .command('add-mcp')
      .description(
        'add an MCP server, by OAuth or with a token, which is tested first and stored only if the server accepts it',
      )
      .argument('<address>', 'of its Streamable HTTP endpoint, such as https://mcp.example/mcp'),
  )
    .option('--id <name>', 'id of the platform for agents; default: the name of its domain')
    .option('--label <name>', 'name of the connection; default: the id')
    .option('--token-stdin', 'read a token from standard input, instead of OAuth')
    .option('--token-env <name>', 'read a token from this variable of the environment')
    .option(
      '--header <name>',
      'the header that the token is sent in, such as X-API-Key; otherwise Authorization: Bearer',
    )
    .option('--client-id <id>', 'OAuth: an already registered client; default: the broker registers one')
    .option('--issuer <url>', 'OAuth: the authorization server, if the server does not declare it')
    .option(
      '--dynamic',
      'OAuth: register dynamically, even if the server could fetch a client document from this broker',
    )
    .option('--json', 'print JSON')
    .action(async (address: string, options: AddMcpOptions) => {
      const { addMcpServer } = await import('../add-mcp.ts');
      const added = await addMcpServer(address, options, (text) => process.stderr.write(`${text}\n`));
      print(options, added, () => describeAdded(added, options));
    });
}

const describeAdded = ({ platform, base_url, connection, scope, test }: AddedMcp, options: AddMcpOptions): string =>
  [
    `Added ${platform} (an MCP server at ${base_url}), connection "${connection}". ${test.detail}`,
    '',
    `Agents may be granted all of its tools, ${scope}; narrower scopes are written in a governance file, or in the console.`,
    'The first list of tools that it gives is accepted; what changes later waits for an owner.',
    '',
    `Next: ${commandWith(options, `connect cursor --grant ${platform}=${scope.slice(scope.indexOf(':') + 1)} --expires 30d`)}`,
  ].join('\n');
