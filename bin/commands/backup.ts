import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { CommandFailed } from '../failure.ts';
import { postgresPrograms } from '../postgres-programs.ts';

export function addBackupCommand(program: Command): void {
  program
    .command('backup')
    .description(
      'back up the store into a new file, with a manifest next to it, also while the broker runs (without the master key)',
    )
    .argument('<file>', 'the file to make')
    .option('--json', 'print the manifest as JSON')
    .action(async (file: string, options: { json?: boolean }) => {
      const { readBuild } = await import('../../broker/build.ts');
      const { readConfig } = await import('../../broker/environment/config.ts');
      const { startFault } = await import('../../broker/process/start-fault.ts');
      const { writeBackup } = await import('../../broker/store/backup.ts');
      const { manifestOf } = await import('../../broker/store/backup-manifest.ts');
      const { noteBackup } = await import('../../broker/store/last-backup.ts');
      const { dumpPostgres } = await import('../../broker/store/postgres/backup.ts');
      const { copySqlite } = await import('../../broker/store/sqlite/backup.ts');
      const config = readConfig(process.env);
      const to = resolve(file);
      const about = { version: readBuild().version, now: Date.now() };
      const databaseUrl = config.databaseUrl?.reveal();
      const storeFile = join(config.dataFolder, 'store', 'broker.db');
      const manifest = await writeBackup(to, about, (partial) =>
        databaseUrl === undefined
          ? copySqlite(storeFile, partial, new Date(about.now))
          : dumpPostgres(databaseUrl, partial, postgresPrograms),
      ).catch((error) => {
        const fault = startFault(error, config, dirname(to));
        throw fault instanceof Error ? new CommandFailed(fault.message, { cause: error }) : fault;
      });
      // Noting the time may fail, and the backup is complete without it: the source may be a standby, or the user may have read access only.
      await noteBackup(databaseUrl === undefined ? { file: storeFile } : { databaseUrl }, about.now).catch((error) => {
        process.stderr.write(
          `The backup was made, but its time could not be recorded in the store, so the console and the metrics do not show it: ${error.message}\n`,
        );
      });
      process.stdout.write(
        options.json
          ? `${JSON.stringify({ file: to, manifest: manifestOf(to), ...manifest })}\n`
          : `Backed up the store into ${file} (${(manifest.bytes / 1e6).toFixed(1)} MB). ${manifestOf(file)} belongs to it. ` +
              'Keep the master key separately from both.\n',
      );
    });
}
