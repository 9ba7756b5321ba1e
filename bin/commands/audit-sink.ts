import type { Command } from 'commander';
import type { AddOptions, Options } from '../audit-sinks/audit-sinks.ts';
import { withConnection } from '../connection.ts';

export function addAuditSinkCommands(program: Command): void {
  const sink = program.command('audit-sink').description('where the audit is pushed to: webhooks, OTLP, S3, files');
  const load = () => import('../audit-sinks/audit-sinks.ts');

  withConnection(sink.command('list').description('list the audit sinks, how far behind they are, and their errors'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listSinks(options));

  withConnection(
    sink
      .command('add <name> <kind> [setting...]')
      .description(
        'add one; kinds with settings as key=value: webhook (url, header), otlp (url, header), s3 (url, region, bucket, prefix, path_style), file (max_bytes)',
      ),
  )
    .option('--format <format>', 'ocsf, or json: rows as in an export of the receipt log; default: ocsf')
    .option('--from <row>', 'now, beginning, or the index of a row; default: now')
    .option('--secret-stdin', 'read the secret from standard input; for s3 a JSON object')
    .option('--secret-env <variable>', 'read the secret from this variable')
    .option('--json', 'print JSON')
    .action(async (name: string, kind: string, settings: string[], options: AddOptions) =>
      (await load()).addSink(name, kind, settings, options),
    );

  withConnection(
    sink.command('test [name...]').description('test whether a sink accepts rows; without a name, all sinks'),
  )
    .option('--json', 'print JSON')
    .action(async (names: string[], options: Options) => (await load()).testSinks(names, options));

  for (const [word, status, what] of [
    ['pause', 'paused', 'send nothing until it is resumed; new rows are sent then'],
    ['resume', 'active', 'resume; after failures without waiting for the next retry'],
  ] as const)
    withConnection(sink.command(`${word} <name>`).description(what))
      .option('--json', 'print JSON')
      .action(async (name: string, options: Options) => (await load()).changeSink(name, { status }, options));

  withConnection(sink.command('seek <name> <row>').description('continue at another row: now, beginning, or an index'))
    .option('--json', 'print JSON')
    .action(async (name: string, from: string, options: Options) => (await load()).changeSink(name, { from }, options));

  withConnection(
    sink.command('remove <name>').description('remove a sink with its secret; rows that it received stay there'),
  )
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).removeSink(name, options));
}
