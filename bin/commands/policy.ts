import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { TryOptions } from '../policies/policies.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('what the rules say, and what they would make of a call');
  const load = () => import('../policies/policies.ts');

  withConnection(policy.command('list').description('the organisation’s policies'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listPolicies(options));

  withConnection(policy.command('show <name>').description('one policy with its rules, in words'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).showPolicy(name, options));

  withConnection(
    policy.command('try').description('what would become of a call, by the rules in force; nothing is written or sent'),
  )
    .requiredOption('--agent <name>', 'the agent, by its name or id')
    .requiredOption('--platform <id>', 'the platform')
    .requiredOption('--endpoint <path>', 'the endpoint, such as /repos/acme/shop/issues')
    .option('--method <method>', 'the method', 'GET')
    .option('--scope <scope>', 'the scope; otherwise the one that it is granted and that covers the endpoint')
    .option('--body <json>', 'the body, as JSON or as @FILE')
    .option('--json', 'print JSON')
    .action(async (options: TryOptions) => (await load()).tryPolicy(options));
}
