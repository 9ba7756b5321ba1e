import { type Command, Option } from 'commander';
import type { ActivityOptions } from '../activity/activity.ts';
import type { ExportOptions } from '../activity/export.ts';
import { withConnection } from '../connection.ts';
import { momentAgo, wholeNumber } from '../duration.ts';
import { WrongUsage } from '../failure.ts';

const MAX = 10_000;
const DEFAULT = 20;
const RESULTS = ['allowed', 'held', 'denied', 'blocked', 'errored', 'change'];

export function addActivityCommand(program: Command): void {
  const activity = withConnection(
    program.command('activity').description('show calls, decisions and changes, newest last, one line each'),
  )
    .option('--agent <name>', 'only of this agent, by its name or id')
    .option('--platform <id>', 'only on this platform')
    .addOption(new Option('--result <result>', 'only what ended so; change: what owners did').choices(RESULTS))
    .option('--since <when>', 'only rows since then: 2h or 3d ago, or a time such as 2027-01-31T18:00:00Z', momentAgo)
    .option('--text <words>', 'only rows with these words in path, reason, detail, agent, platform, scope or id')
    .option('--limit <number>', 'maximum number of rows before following', wholeNumber(1, MAX), DEFAULT)
    .option('--follow', 'continue with new rows until Ctrl-C')
    .option('--json', 'print JSON, one object per line')
    .action(async (options: ActivityOptions) => {
      const { showActivity } = await import('../activity/activity.ts');
      await showActivity(options);
    });
  activity
    .command('export')
    .description('export all matching final rows, oldest first; takes the filters of activity')
    .addOption(
      new Option('--format <format>', 'jsonl: with receipts; csv: a table without them')
        .choices(['jsonl', 'csv'])
        .default('jsonl'),
    )
    .option('--output <file>', 'output file; default: standard output')
    .action(async (_options: unknown, command: Command) => {
      const extra = ['limit', 'follow'].find((name) => activity.getOptionValueSource(name) === 'cli');
      if (extra !== undefined)
        throw new WrongUsage(
          `An export has all matching rows: leave out --${extra}, or select fewer, such as with --since.`,
        );
      const { exportActivity } = await import('../activity/export.ts');
      await exportActivity(command.optsWithGlobals<ExportOptions>());
    });
}
