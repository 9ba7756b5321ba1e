import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { connectAsOwner, dataFolder, print } from '../connection.ts';
import { fileNameOf, type MakeOptions, makeAgent, makeInvite, withTerms } from '../make-agent.ts';
import { mcpSnippets } from '../mcp-snippets.ts';
import { ownLauncher } from '../server-entry.ts';

type Options = MakeOptions & { out?: string; json?: boolean };

export function addAgentCreateCommand(agent: Command): void {
  withTerms(
    agent
      .command('create <name>')
      .description(
        'make a key pair here, make the agent at the broker, write its profile, and show what MCP clients need',
      ),
  )
    .option('--invite <token>', 'an invite (inv_…) or a bootstrap token (abt_…), instead of an owner session')
    .option('--out <file>', 'where the profile goes; otherwise profiles/NAME.json in the data folder')
    .option('--json', 'print JSON')
    .action(create);

  withTerms(agent.command('invite <name>').description('make an invite, for an agent on a machine without an owner'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => {
      const invite = await makeInvite(await connectAsOwner(options), name, options);
      const where = `agent-broker agent create ${fileNameOf(name)} --url ${new URL(String(invite.bind_url)).origin} --invite ${invite.bind_secret}`;
      print(
        options,
        invite,
        () =>
          `${invite.bind_secret}\nShown once, good once, until ${invite.expires_at}. On the agent's machine:\n  ${where}`,
      );
    });
}

async function create(name: string, options: Options): Promise<void> {
  const path = resolve(options.out ?? join(dataFolder(options), 'profiles', `${fileNameOf(name)}.json`));
  const made = await makeAgent(name, options, path);
  const shown = { name, ...made, profile: path, snippets: snippetsOf(path) };
  print(options, shown, () => inWords(name, made.agent_id, path));
}

const snippetsOf = (path: string) => mcpSnippets(path, { launcher: ownLauncher() });

function inWords(name: string, agentId: string, path: string): string {
  const snippets = snippetsOf(path).map(
    ({ client, how, text }) => `${client}: ${how}\n\n${text.replaceAll(/^/gm, '  ')}\n`,
  );
  return [
    `${name} (${agentId}) can sign. Its key is in ${path}, which only you can read, and nowhere else.`,
    '',
    ...snippets,
    `Whether everything is as it should be: agent-broker doctor --profile ${path}`,
  ].join('\n');
}
