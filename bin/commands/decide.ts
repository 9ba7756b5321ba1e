import type { Command } from 'commander';
import { withConnection } from '../connection.ts';
import { type Lasting, lastingSeconds, listed, wholeNumber } from '../duration.ts';
import { WrongUsage } from '../failure.ts';
import type { CorrectOptions } from '../inbox/correct.ts';
import type { DecideOptions } from '../inbox/decide.ts';
import type { Terms } from '../inbox/word.ts';

const MOST_WAIT_SECONDS = 600;
const WAIT_SECONDS = 30;
const MOST_USES = 1_000;

type Standing = { next?: number; for?: Lasting; session?: true; free?: string[] };

export function addDecideCommands(program: Command): void {
  withConnection(
    program
      .command('approve <id...>')
      .description('approve what waits, by the beginnings of ids that "inbox" lists; shows it and asks'),
  )
    .option('--yes', 'do not ask')
    .option(
      '--wait <seconds>',
      'how long to wait for what the platform answers to a call',
      wholeNumber(1, MOST_WAIT_SECONDS),
      WAIT_SECONDS,
    )
    .option('--no-wait', 'end as soon as it is decided')
    .option(
      '--scopes <scope,…>',
      'what to grant: of an access request instead of what it asks for, of an agent that registers itself fewer of them',
      listed,
    )
    .option('--expires <when>', 'of an access request: when the grant ends, such as 30d, or never', lastingSeconds)
    .option('--approval', 'of an access request: every call with the grant waits for an approval')
    .option('--connection <name>', 'of an access request: the connection whose grant gains it')
    .option('--name <name>', 'of an agent that registers itself: what to call it')
    .option('--policy <name>', 'of an agent that registers itself: the policy that it gets')
    .option(
      '--next <n>',
      'of a call: also lets the next ones pass that are like it, so many',
      wholeNumber(1, MOST_USES),
    )
    .option('--for <when>', 'with --next: until when, such as 1h, 7d or a moment; 30d at most', lastingSeconds)
    .option('--session', 'with --next: only in the session of this call, 12 h at most')
    .option(
      '--free <member...>',
      'with --next: members that may differ, such as /text, or /amount=500 for at most that',
    )
    .option('--json', 'print JSON')
    .action(async (ids: string[], options: DecideOptions & Terms & Standing & { wait: number | false }) => {
      const { scopes, expires, approval, connection, name, policy } = options;
      const { standingWanted } = await import('../inbox/standing-word.ts');
      const standing = standingWanted(options);
      if (standing && ids.length > 1) throw new WrongUsage('With --next one call is approved at a time.');
      const said = Object.entries({ scopes, expires, approval, connection, name, policy, standing });
      const terms: Terms = Object.fromEntries(said.filter(([, value]) => value !== undefined));
      const { decideAll } = await import('../inbox/decide.ts');
      await decideAll(ids, { verb: 'approve', terms, wait: options.wait === false ? null : options.wait }, options);
    });

  withConnection(
    program
      .command('correct <id>')
      .description('correct a held call before it is decided, by the beginning of its id; it goes on waiting'),
  )
    .option('--body <json>', 'the whole body: a JSON object, or @ and the name of a file with one')
    .option('--endpoint <path>', 'the endpoint, with its query')
    .option('--json', 'print JSON')
    .action(async (id: string, options: CorrectOptions) => {
      const { correctCall } = await import('../inbox/correct.ts');
      await correctCall(id, options);
    });

  withConnection(
    program
      .command('deny <id...>')
      .description('deny what waits, by the beginnings of ids that "inbox" lists; shows it and asks'),
  )
    .option('--reason <text>', 'for the agent to read')
    .option('--network', 'of an agent that registers itself: rejects all that wait from the same network')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (ids: string[], options: DecideOptions & { reason?: string; network?: true }) => {
      if (options.network) {
        const { rejectNetworks } = await import('../inbox/reject-network.ts');
        return await rejectNetworks(ids, options);
      }
      const { decideAll } = await import('../inbox/decide.ts');
      await decideAll(ids, { verb: 'deny', reason: options.reason }, options);
    });
}
