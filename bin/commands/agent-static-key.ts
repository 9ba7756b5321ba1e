import type { Command } from 'commander';
import type { StaticKeyOptions } from '../agents/static-keys.ts';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { lastingSeconds } from '../duration.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addStaticKeyCommands(agent: Command): void {
  const key = agent
    .command('static-key')
    .description('bearers for one connection, for clients that can neither sign nor be started by "run"');
  const load = () => import('../agents/static-keys.ts');

  withConnection(key.command('issue <agent>').description('issue one; it is weaker than the agent’s own tokens'))
    .requiredOption('--connection <name>', 'the one connection that it is good for, by label or id')
    .requiredOption('--label <text>', 'what it is called, such as the client that holds it')
    .option('--expires <when>', 'until when: 7d, 12h, a moment; 90d at most, 30d when left out', lastingSeconds)
    .option('--json', 'print JSON')
    .action(async (given: string, options: StaticKeyOptions) => (await load()).issueStaticKey(given, options));

  withConnection(key.command('list <agent>').description('those of an agent, newest first, without their secrets'))
    .option('--json', 'print JSON')
    .action(async (given: string, options: Options) => (await load()).listStaticKeys(given, options));

  withConnection(key.command('revoke <agent> <key>').description('revoke one, by its id or the beginning of it'))
    .option('--json', 'print JSON')
    .action(async (given: string, id: string, options: Options) => (await load()).revokeStaticKey(given, id, options));
}
