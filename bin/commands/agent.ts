import type { Command } from 'commander';
import { type ConnectionOptions, connectAsOwner, print, withConnection } from '../connection.ts';
import { addAgentCreateCommand } from './agent-create.ts';

type Options = ConnectionOptions & { json?: boolean; reason?: string };
type Agent = { name: string; agent_id: string; owner_id: string; status: string };

export function addAgentCommands(program: Command): void {
  const agent = program.command('agent').description('the organisation’s agents');
  addAgentCreateCommand(agent);

  withConnection(agent.command('list').description('list the agents'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const broker = await connectAsOwner(options);
      const { agents } = (await broker.ask('GET', '/owner/agents')) as { agents: Agent[] };
      print(options, agents, () => table(agents));
    });

  withConnection(agent.command('bootstrap <agent-id>').description('make a token with which an agent brings its key'))
    .option('--rotate', 'for an agent that has a key, which binding replaces')
    .option('--json', 'print JSON')
    .action(async (id: string, options: Options & { rotate?: true }) => {
      const broker = await connectAsOwner(options);
      const path = `/owner/agents/${encodeURIComponent(id)}/bootstrap-token`;
      const made = (await broker.ask('POST', path, options.rotate ? { rotate: true } : {})) as Record<
        'bootstrap_token' | 'expires_at' | 'bind_url',
        string
      >;
      const what = `Shown once, good until ${made.expires_at}${options.rotate ? '; the key that the agent has goes on until another is bound' : ''}.`;
      print(options, made, () => `${made.bootstrap_token}\n${what}\nExchanged at POST ${made.bind_url}.`);
    });

  for (const [verb, what] of [
    ['suspend', 'stop an agent until it is resumed'],
    ['resume', 'let a suspended agent go on'],
    ['revoke', 'revoke an agent, for good'],
    ['delete', 'forget a revoked agent; what it did stays on record'],
  ] as const)
    withConnection(agent.command(`${verb} <agent-id>`).description(what))
      .option('--reason <text>', 'shown to the agent')
      .option('--json', 'print JSON')
      .action(async (id: string, options: Options) => {
        const broker = await connectAsOwner(options);
        const body = options.reason ? { reason: options.reason } : {};
        const now = (await broker.ask('POST', `/owner/agents/${encodeURIComponent(id)}/${verb}`, body)) as Agent;
        print(options, now, () => `${now.name} (${now.agent_id}) is ${now.status}.`);
      });
}

function table(agents: readonly Agent[]): string {
  if (agents.length === 0) return 'There are no agents yet.';
  const header = ['NAME', 'AGENT ID', 'OWNER ID', 'STATUS'];
  const rows = [header, ...agents.map((a) => [a.name, a.agent_id, a.owner_id, a.status])];
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
