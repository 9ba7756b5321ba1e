import { type Command, Option } from 'commander';
import type { ActivityOptions } from '../activity/activity.ts';
import { withConnection } from '../connection.ts';
import { momentAgo, wholeNumber } from '../duration.ts';

const MOST = 10_000;
const USUAL = 20;
const RESULTS = ['allowed', 'held', 'denied', 'blocked', 'errored', 'change'];

export function addActivityCommand(program: Command): void {
  withConnection(
    program.command('activity').description('what was decided, done and changed, newest last, one line each'),
  )
    .option('--agent <name>', 'only of this agent, by its name or id')
    .option('--platform <id>', 'only on this platform')
    .addOption(new Option('--result <result>', 'only what ended so; change: what owners did').choices(RESULTS))
    .option('--since <when>', 'only from then on: 2h or 3d ago, or a moment such as 2027-01-31T18:00:00Z', momentAgo)
    .option('--limit <number>', 'how many at most, before it follows', wholeNumber(1, MOST), USUAL)
    .option('--follow', 'go on with what comes, until Ctrl-C')
    .option('--json', 'print JSON, one object a line')
    .action(async (options: ActivityOptions) => {
      const { showActivity } = await import('../activity/activity.ts');
      await showActivity(options);
    });
}
