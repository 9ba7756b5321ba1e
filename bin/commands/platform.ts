import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { UpdateOptions } from '../platforms/platforms.ts';

export function addPlatformCommands(program: Command): void {
  const platform = program.command('platform').description('platforms, and updates of the built-in ones');
  const load = () => import('../platforms/platforms.ts');

  withConnection(platform.command('list').description('which there are, and which have an update'))
    .option('--json', 'print JSON')
    .action(async (options: ConnectionOptions & { json?: boolean }) => (await load()).listPlatforms(options));

  withConnection(
    platform
      .command('update [platform...]')
      .description('give built-in platforms the manifest of this release; without a name, all that have an update'),
  )
    .option('--dry-run', 'say only what would change; with --json all of it')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (names: string[], options: UpdateOptions) => (await load()).updatePlatforms(names, options));
}
