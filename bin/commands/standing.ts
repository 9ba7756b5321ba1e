import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';

type Options = ConnectionOptions & { json?: boolean; all?: boolean };

export function addStandingCommands(program: Command): void {
  const standing = program
    .command('standing')
    .description('standing approvals: calls that are allowed without asking again');
  const load = () => import('../inbox/standing.ts');

  withConnection(standing.command('list').description('list the standing approvals in force, newest first'))
    .option('--all', 'include ended ones')
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listStanding(options));

  withConnection(standing.command('revoke <id>').description('revoke one, by its id or a unique prefix of it'))
    .option('--json', 'print JSON')
    .action(async (id: string, options: Options) => (await load()).revokeStanding(id, options));
}
