import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { TryOptions } from '../policies/policies.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('show policies, and simulate a call');
  const load = () => import('../policies/policies.ts');

  withConnection(policy.command('list').description('list the policies of the organisation'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listPolicies(options));

  withConnection(policy.command('show <name>').description('show a policy with its rules as text'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).showPolicy(name, options));

  withConnection(
    policy.command('try').description('simulate a call with the rules in force; nothing is stored or sent'),
  )
    .requiredOption('--agent <name>', 'the agent, by its name or id')
    .requiredOption('--platform <id>', 'the platform')
    .requiredOption('--endpoint <path>', 'the endpoint, such as /repos/acme/shop/issues')
    .option('--method <method>', 'the method', 'GET')
    .option('--scope <scope>', 'the scope; default: the granted one that covers the call')
    .option('--connection <name>', 'the connection that the call names; default: it names none')
    .option('--body <json>', 'the body, as JSON or as @FILE')
    .option('--encoding <encoding>', 'base64: the body is a text that encodes bytes')
    .option('--json', 'print JSON')
    .action(async (options: TryOptions) => (await load()).tryPolicy(options));
}
