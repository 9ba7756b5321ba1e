import { Argument, type Command, InvalidArgumentError } from 'commander';
import { CLIENTS, type ClientId } from '../clients/clients.ts';
import type { ConnectOptions } from '../clients/connect-client.ts';
import { manualInstructions } from '../clients/manual-config.ts';
import { print } from '../connection.ts';
import { withTerms } from '../make-agent.ts';
import { ownLauncher, plainEntry } from '../server-entry.ts';

export function addConnectCommand(program: Command): void {
  withTerms(
    program
      .command('connect')
      .description(
        'create an agent for an MCP client on this machine, and add agent-broker to the client’s configuration',
      )
      .addArgument(
        new Argument('[client]', `which client: ${CLIENTS.join(', ')}; asks where none is named`)
          .choices([...CLIENTS])
          .argParser(clientOf),
      ),
  )
    .option('--name <name>', 'name of the agent; default: from the client and the machine')
    .option('--profile <file>', 'profile of an existing agent')
    .option('--invite <token>', 'an invite (inv_…) or a bootstrap token (abt_…), instead of an owner session')
    .option('--project', 'only for the project in this folder, in a file that may be committed')
    .option('--dry-run', 'only show what would be done')
    .option('--undo', 'remove agent-broker from the client’s configuration')
    .option('--json', 'print JSON')
    .action(async (named: ClientId | undefined, options: ConnectOptions) => {
      const { connectClient, describeConnected, isNewAgent } = await import('../clients/connect-client.ts');
      const { askClient, askTerms } = await import('../clients/ask-connect.ts');
      const client = named ?? (await askClient());
      // Interactive questions are only for people who did not name a client.
      const asks = named === undefined && !options.undo && isNewAgent(client, options);
      const done = await connectClient(client, asks ? await askTerms(options) : options);
      print(options, done, () => describeConnected(done, options));
    });
}

/** Parses the name of a client. Throws InvalidArgumentError, which explains how to configure another client by hand. */
function clientOf(word: string): ClientId {
  const known = CLIENTS.find((client) => client === word);
  if (known) return known;
  const { platform } = process;
  const entry = plainEntry({ profile: 'FILE', launcher: ownLauncher(), platform });
  throw new InvalidArgumentError(
    `There is no client ${JSON.stringify(word)}. The clients are ${CLIENTS.join(', ')}.\n${manualInstructions(entry)}\nSee docs/clients/others.md.`,
  );
}
