import type { Command } from 'commander';
import type { WorkloadOptions } from '../agents/workloads.ts';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { type Terms, withTerms } from '../make-agent.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addWorkloadCommands(agent: Command): void {
  const workload = agent
    .command('workload')
    .description('workload identities: agents without a key, authenticated by tokens of their platform');
  const load = () => import('../agents/workloads.ts');
  const issued = (command: Command): Command =>
    command
      .requiredOption('--issuer <url>', '`iss` of the tokens, such as that of the cluster')
      .requiredOption('--subject <text>', '`sub` of the tokens, such as system:serviceaccount:agents:triage')
      .option('--jwks-uri <url>', 'URL of the issuer’s keys, if it publishes no discovery document')
      .option('--json', 'print JSON');

  issued(
    withTerms(
      workload.command('create <name>').description('create an agent with a workload identity and without a key'),
    ),
  ).action(async (name: string, options: WorkloadOptions & Terms) => (await load()).createWithWorkload(name, options));

  issued(
    withConnection(
      workload
        .command('set <agent>')
        .description('accept tokens of a workload for an agent, in addition to those that it signs'),
    ),
  ).action(async (given: string, options: WorkloadOptions) => (await load()).setWorkload(given, options));

  withConnection(workload.command('remove <agent>').description('stop accepting tokens of a workload'))
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options) => (await load()).removeWorkload(given, options));
}
