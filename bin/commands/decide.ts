import type { Command } from 'commander';
import { withConnection } from '../connection.ts';
import { type Lasting, lifetimeSeconds, listed, wholeNumber } from '../duration.ts';
import { WrongUsage } from '../failure.ts';
import type { CorrectOptions } from '../inbox/correct.ts';
import type { DecideOptions } from '../inbox/decide.ts';
import type { Terms } from '../inbox/decision-request.ts';

const MAX_WAIT_SECONDS = 600;
const WAIT_SECONDS = 30;
const MAX_USES = 1_000;

type Standing = { next?: number; for?: Lasting; session?: true; free?: string[] };

export function addDecideCommands(program: Command): void {
  withConnection(
    program
      .command('approve <id...>')
      .description('approve items of the inbox, by ids or unique prefixes; shows each and asks'),
  )
    .option('--yes', 'do not ask')
    .option(
      '--wait <seconds>',
      'how long to wait for what the platform answers to a call',
      wholeNumber(1, MAX_WAIT_SECONDS),
      WAIT_SECONDS,
    )
    .option('--no-wait', 'do not wait for the result of the call')
    .option(
      '--scopes <scope,…>',
      'what to grant: of an access request instead of what it asks for, of an agent that registers itself fewer of them',
      listed,
    )
    .option('--expires <when>', 'for an access request: expiry of the grant, such as 30d, or never', lifetimeSeconds)
    .option('--approval', 'for an access request: every call with the grant needs an approval')
    .option('--connection <name>', 'for an access request: the connection whose grant is extended')
    .option('--name <name>', 'for an agent registration: its name')
    .option('--policy <name>', 'for an agent registration: its policy')
    .option('--next <n>', 'of a call: also lets the next ones pass that are like it, so many', wholeNumber(1, MAX_USES))
    .option('--for <when>', 'with --next: expiry, such as 1h, 7d or a time; at most 30d', lifetimeSeconds)
    .option('--session', 'with --next: only in the session of this call, 12 h at most')
    .option(
      '--free <member...>',
      'with --next: members that may differ, such as /text, or /amount=500 for at most that',
    )
    .option('--json', 'print JSON')
    .action(async (ids: string[], options: DecideOptions & Terms & Standing & { wait: number | false }) => {
      const { scopes, expires, approval, connection, name, policy } = options;
      const { readStandingOptions } = await import('../inbox/standing-request.ts');
      const standing = readStandingOptions(options);
      if (standing && ids.length > 1) throw new WrongUsage('With --next one call is approved at a time.');
      const said = Object.entries({ scopes, expires, approval, connection, name, policy, standing });
      const terms: Terms = Object.fromEntries(said.filter(([, value]) => value !== undefined));
      const { decideAll } = await import('../inbox/decide.ts');
      await decideAll(ids, { verb: 'approve', terms, wait: options.wait === false ? null : options.wait }, options);
    });

  withConnection(
    program
      .command('correct <id>')
      .description('correct a held call before it is decided, by id or unique prefix; it stays held'),
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
      .description('deny items of the inbox, by ids or unique prefixes; shows each and asks'),
  )
    .option('--reason <text>', 'shown to the agent')
    .option('--network', 'for an agent registration: reject all pending ones from the same network')
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
