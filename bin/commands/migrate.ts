import type { Command } from 'commander';

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('apply pending migrations without serving (a server does so at its start)')
    .option('--contract', 'then remove what only earlier releases need, once none of them runs')
    .option('--json', 'print JSON')
    .action(async (options: { contract?: boolean; json?: boolean }) => {
      const { readBuild } = await import('../../broker/build.ts');
      const { readConfig } = await import('../../broker/environment/config.ts');
      const { makeLog } = await import('../../broker/log/log.ts');
      const { openPlainStore } = await import('../../broker/process/start.ts');
      const { startFault } = await import('../../broker/process/start-fault.ts');
      const { contract } = await import('../../broker/store/contract.ts');
      const { migrate } = await import('../../broker/store/migrate.ts');
      const { postgresTime } = await import('../../broker/store/store-time.ts');
      const config = readConfig(process.env);
      const store = openPlainStore(config, makeLog(config.logLevel));
      try {
        const applied = await migrate(store, readBuild().version);
        const now = store.dialect === 'postgres' ? await postgresTime(store.db) : Date.now();
        const contracted = options.contract ? await contract(store, now) : [];
        process.stdout.write(
          options.json
            ? `${JSON.stringify({ applied, ...(options.contract && { contracted }) })}\n`
            : words({ applied, contracted }),
        );
      } catch (error) {
        throw startFault(error, config);
      } finally {
        await store.close();
      }
    });
}

function words({ applied, contracted }: { applied: readonly string[]; contracted: readonly string[] }): string {
  if (applied.length === 0 && contracted.length === 0) return 'The store is up to date.\n';
  const done = [
    ...(applied.length > 0 ? [`Applied: ${applied.join(', ')}.`] : []),
    ...(contracted.length > 0 ? [`Contracted: ${contracted.join(', ')}.`] : []),
  ];
  return `${done.join('\n')}\n`;
}
