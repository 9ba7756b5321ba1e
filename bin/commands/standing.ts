import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';

type Options = ConnectionOptions & { json?: boolean; all?: boolean };

export function addStandingCommands(program: Command): void {
  const standing = program
    .command('standing')
    .description('standing approvals: calls that pass without being asked for');
  const load = () => import('../inbox/standing.ts');

  withConnection(standing.command('list').description('those in force, newest first'))
    .option('--all', 'those that are over, too')
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listStanding(options));

  withConnection(standing.command('revoke <id>').description('revoke one, by its id or the beginning of it'))
    .option('--json', 'print JSON')
    .action(async (id: string, options: Options) => (await load()).revokeStanding(id, options));
}
