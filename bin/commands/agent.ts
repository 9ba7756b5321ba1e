import type { Command } from 'commander';
import type { StatusOptions } from '../agents/change-status.ts';
import { type ConnectionOptions, print, withConnection } from '../connection.ts';
import { CommandFailed, RefusedByBroker } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { addAgentCreateCommand } from './agent-create.ts';
import { addStaticKeyCommands } from './agent-static-key.ts';
import { addWorkloadCommands } from './agent-workload.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addAgentCommands(program: Command): void {
  const agent = program.command('agent').description('agents of the organisation');
  addAgentCreateCommand(agent);

  withConnection(agent.command('list').description('list the agents'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const { listAgents } = await import('../agents/list-agents.ts');
      await listAgents(options);
    });

  withConnection(
    agent
      .command('show <agent>')
      .description('show an agent, by its name or id: status, key, policy, grants, pending items, and its last call'),
  )
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options) => {
      const { showAgent } = await import('../agents/show-agent.ts');
      await showAgent(given, options);
    });

  withConnection(
    agent
      .command('bootstrap <agent>')
      .description('create a bootstrap token with which an agent binds its key; by its name or id'),
  )
    .option('--rotate', 'for an agent that has a key: binding replaces the key, and its children end')
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options & { rotate?: true }) => {
      const { agentIdOf } = await import('../find-agent.ts');
      const api = await openOwnerApi(options);
      const path = `/owner/agents/${encodeURIComponent(await agentIdOf(api, given))}/bootstrap-token`;
      const asked = api.broker.ask('POST', path, options.rotate ? { rotate: true } : {}).catch((error) => {
        if (!(error instanceof RefusedByBroker && error.code === 'agent_has_key')) throw error;
        throw new CommandFailed(
          'This agent has its key already. Add --rotate for a token with which it replaces that key.',
        );
      });
      const made = (await asked) as Record<'bootstrap_token' | 'expires_at' | 'bind_url', string>;
      const what = `Shown once, good until ${made.expires_at}${options.rotate ? "; the agent's current key is valid until another is bound, which ends its children" : ''}.`;
      print(options, made, () => `${made.bootstrap_token}\n${what}\nExchanged at POST ${made.bind_url}.`);
    });

  addStaticKeyCommands(agent);
  addWorkloadCommands(agent);

  for (const [verb, what] of [
    ['suspend', 'stop an agent until it is resumed'],
    ['resume', 'let a suspended agent go on'],
    ['revoke', 'revoke an agent, permanently'],
    ['delete', 'forget a revoked agent; what it did stays on record'],
  ] as const)
    withConnection(agent.command(`${verb} <agent>`).description(`${what}; by its name or id`))
      .option('--reason <text>', 'shown to the agent')
      .option('--yes', 'do not ask before changes that cannot be undone')
      .option('--json', 'print JSON')
      .action(async (given: string, options: StatusOptions) => {
        const { changeStatus } = await import('../agents/change-status.ts');
        await changeStatus(verb, given, options);
      });
}
