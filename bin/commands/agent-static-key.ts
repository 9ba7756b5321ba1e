import type { Command } from 'commander';
import type { StaticKeyOptions } from '../agents/static-keys.ts';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { lifetimeSeconds } from '../duration.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addStaticKeyCommands(agent: Command): void {
  const key = agent
    .command('static-key')
    .description('bearers for one connection, for clients that can neither sign nor be started by "run"');
  const load = () => import('../agents/static-keys.ts');

  withConnection(
    key.command('issue <agent>').description('issue a static key; it is weaker than the agent’s own tokens'),
  )
    .requiredOption('--connection <name>', 'the connection that the key is valid for, by label or id')
    .requiredOption('--label <text>', 'label, such as the name of the client')
    .option('--expires <when>', 'expiry: 7d, 12h, or a time; at most 90d, default 30d', lifetimeSeconds)
    .option('--json', 'print JSON')
    .action(async (given: string, options: StaticKeyOptions) => (await load()).issueStaticKey(given, options));

  withConnection(
    key.command('list <agent>').description('list the static keys of an agent, newest first, without their secrets'),
  )
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options) => (await load()).listStaticKeys(given, options));

  withConnection(key.command('revoke <agent> <key>').description('revoke one, by its id or a unique prefix of it'))
    .option('--json', 'print JSON')
    .action(async (given: string, id: string, options: Options) => (await load()).revokeStaticKey(given, id, options));
}
