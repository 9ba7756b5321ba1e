import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { bindLine, fileNameOf } from '../../broker/console/static/new-agent/lines.js';
import { CLIENTS, type ClientId } from '../clients/clients.ts';
import { manualEntry } from '../clients/manual-config.ts';
import { mcpSnippets, type Snippet } from '../clients/mcp-snippets.ts';
import { connectAsOwner, dataFolder, print } from '../connection.ts';
import { describeGrants } from '../describe-grants.ts';
import {
  lookUpTerms,
  type MadeAgent,
  type MakeOptions,
  makeAgent,
  makeInvite,
  placeOfKey,
  withTerms,
} from '../make-agent.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine, ownLauncher, plainEntry } from '../server-entry.ts';

type Options = MakeOptions & { out?: string; client?: ClientId; json?: boolean };

export function addAgentCreateCommand(agent: Command): void {
  withTerms(
    agent
      .command('create <name>')
      .description('generate a key pair here, create the agent at the broker, and write its profile'),
  )
    .option('--invite <token>', 'an invite (inv_…) or a bootstrap token (abt_…), instead of an owner session')
    .addOption(new Option('--client <client>', 'show the configuration of this MCP client').choices([...CLIENTS]))
    .option('--out <file>', 'file of the profile; default: profiles/NAME.json in the data folder')
    .option('--json', 'print JSON')
    .action(create);

  withTerms(agent.command('invite <name>').description('create an invite, for an agent on a machine without an owner'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => {
      const broker = await connectAsOwner(options);
      const grants = await lookUpTerms(broker, name, options);
      const invite = await makeInvite(broker, name, { policy: options.policy, grants });
      const granted = describeGrants(grants);
      const { origin: url } = new URL(String(invite.bind_url));
      const where = bindLine({ name, url, token: String(invite.bind_secret) });
      print(options, invite, () =>
        [
          `${invite.bind_secret}`,
          ...granted,
          `Shown once, good once, until ${invite.expires_at}. On the agent's machine:\n  ${where}`,
        ].join('\n'),
      );
    });
}

async function create(name: string, options: Options): Promise<void> {
  const path = resolve(options.out ?? join(dataFolder(options), 'profiles', `${fileNameOf(name)}.json`));
  const made = await makeAgent(name, options, path);
  const machine = { platform: process.platform, environment: process.env, home: homedir(), cwd: process.cwd() };
  const clients = options.client && [options.client];
  const snippets = await mcpSnippets(path, { machine, launcher: ownLauncher(), ...(clients && { clients }) });
  print(options, { name, ...made, profile: path, snippets }, () =>
    describeCreated(name, made, path, clients ? snippets : []),
  );
}

function describeCreated(
  name: string,
  { agent_id: agentId, grants }: MadeAgent,
  path: string,
  snippets: readonly Snippet[],
): string {
  const shown = snippets.map(({ client, how, text }) => `${client}: ${how}\n\n${text.replaceAll(/^/gm, '  ')}\n`);
  return [
    `${name} (${agentId}) can sign. ${placeOfKey(path)}`,
    ...describeGrants(grants),
    '',
    ...(shown.length > 0
      ? shown
      : [
          `Give it to an MCP client: ${PROGRAM} connect CLIENT --profile ${commandLine([path])}`,
          `CLIENT is ${CLIENTS.join(', ')}. Most others take it like this:`,
          manualEntry(plainEntry({ profile: path, launcher: ownLauncher(), platform: process.platform })),
        ]),
    `To check that everything works: ${PROGRAM} doctor --profile ${commandLine([path])}`,
  ].join('\n');
}
