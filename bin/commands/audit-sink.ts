import type { Command } from 'commander';
import type { AddOptions, Options } from '../audit-sinks/audit-sinks.ts';
import { withConnection } from '../connection.ts';

export function addAuditSinkCommands(program: Command): void {
  const sink = program.command('audit-sink').description('where the audit is pushed to: webhooks, OTLP, S3, files');
  const load = () => import('../audit-sinks/audit-sinks.ts');

  withConnection(sink.command('list').description('which there are, how far behind they are, and what is wrong'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listSinks(options));

  withConnection(
    sink
      .command('add <name> <kind> [setting...]')
      .description(
        'add one; kinds with settings as key=value: webhook (url, header), otlp (url, header), s3 (url, region, bucket, prefix, path_style), file (max_bytes)',
      ),
  )
    .option('--format <format>', 'ocsf, or json: rows as an export of the receipt log has them; without it, ocsf')
    .option('--from <row>', 'now, beginning, or the index of a row; without it, now')
    .option('--secret-stdin', 'read the secret from standard input; of s3 a JSON object')
    .option('--secret-env <variable>', 'take the secret from this variable')
    .option('--json', 'print JSON')
    .action(async (name: string, kind: string, settings: string[], options: AddOptions) =>
      (await load()).addSink(name, kind, settings, options),
    );

  withConnection(
    sink.command('test [name...]').description('try whether it would take rows; without a name, all of them'),
  )
    .option('--json', 'print JSON')
    .action(async (names: string[], options: Options) => (await load()).testSinks(names, options));

  for (const [word, status, what] of [
    ['pause', 'paused', 'send nothing until it is resumed; what comes meanwhile is sent then'],
    ['resume', 'active', 'go on, at once where it failed'],
  ] as const)
    withConnection(sink.command(`${word} <name>`).description(what))
      .option('--json', 'print JSON')
      .action(async (name: string, options: Options) => (await load()).changeSink(name, { status }, options));

  withConnection(sink.command('seek <name> <row>').description('go on with another row: now, beginning, or an index'))
    .option('--json', 'print JSON')
    .action(async (name: string, from: string, options: Options) => (await load()).changeSink(name, { from }, options));

  withConnection(sink.command('remove <name>').description('remove one, with its secret; what it was sent stays there'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).removeSink(name, options));
}
