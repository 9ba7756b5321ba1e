import type { Command } from 'commander';

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('apply pending migrations without serving (a server does so at its start)')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const { readConfig } = await import('../../broker/config.ts');
      const { makeLog } = await import('../../broker/log.ts');
      const { openPlainStore } = await import('../../broker/start.ts');
      const { startFault } = await import('../../broker/start-fault.ts');
      const { migrate } = await import('../../broker/store/migrate.ts');
      const config = readConfig(process.env);
      const store = openPlainStore(config, makeLog(config.logLevel));
      try {
        const applied = await migrate(store);
        process.stdout.write(
          options.json
            ? `${JSON.stringify({ applied })}\n`
            : `${applied.length === 0 ? 'The store is up to date.' : `Applied: ${applied.join(', ')}.`}\n`,
        );
      } catch (error) {
        throw startFault(error, config);
      } finally {
        await store.close();
      }
    });
}
