import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { UpdateOptions } from '../platforms/platforms.ts';

export function addPlatformCommands(program: Command): void {
  const platform = program.command('platform').description('platforms, and updates of the built-in ones');
  const load = () => import('../platforms/platforms.ts');

  withConnection(platform.command('list').description('list the platforms, and those with an update'))
    .option('--json', 'print JSON')
    .action(async (options: ConnectionOptions & { json?: boolean }) => (await load()).listPlatforms(options));

  withConnection(
    platform
      .command('update [platform...]')
      .description('update built-in platforms to the manifest of this release; without a name, all with an update'),
  )
    .option('--dry-run', 'only show what would change; with --json everything')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (names: string[], options: UpdateOptions) => (await load()).updatePlatforms(names, options));
}
