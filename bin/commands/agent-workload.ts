import type { Command } from 'commander';
import type { WorkloadOptions } from '../agents/workloads.ts';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { type Terms, withTerms } from '../make-agent.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addWorkloadCommands(agent: Command): void {
  const workload = agent
    .command('workload')
    .description('agents that keep no key: tokens that their platform issues are taken for them');
  const load = () => import('../agents/workloads.ts');
  const issued = (command: Command): Command =>
    command
      .requiredOption('--issuer <url>', '`iss` of the tokens, such as that of the cluster')
      .requiredOption('--subject <text>', '`sub` of the tokens, such as system:serviceaccount:agents:triage')
      .option('--jwks-uri <url>', 'where the keys of the issuer are, when it publishes no discovery document')
      .option('--json', 'print JSON');

  issued(
    withTerms(workload.command('create <name>').description('make an agent that has a workload and no key')),
  ).action(async (name: string, options: WorkloadOptions & Terms) => (await load()).createWithWorkload(name, options));

  issued(
    withConnection(
      workload
        .command('set <agent>')
        .description('take tokens of a workload for an agent, besides those that it signs'),
    ),
  ).action(async (given: string, options: WorkloadOptions) => (await load()).setWorkload(given, options));

  withConnection(workload.command('remove <agent>').description('take them no more'))
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options) => (await load()).removeWorkload(given, options));
}
