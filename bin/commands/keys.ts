import { Argument, type Command } from 'commander';
import { connectLocally, print } from '../connection.ts';
import { OutcomeUnknown } from '../failure.ts';

export function addKeysCommand(program: Command): void {
  program
    .command('keys')
    .description('keys of the broker')
    .command('rotate')
    .description(
      'rotate a signing key (published ahead, then used), the key that secrets are sealed to, or the master key (all stored secrets are re-wrapped)',
    )
    .addArgument(
      new Argument('<use>', 'which key').choices([
        'evidence',
        'issuing',
        'root',
        'session',
        'secrets',
        'log',
        'master',
      ]),
    )
    .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
    .option('--json', 'print JSON')
    .action(async (use: string, options: { data?: string; json?: boolean }) => {
      const answer = await (await connectLocally(options)).ask('POST', '/owner/keys/rotate', { use }).catch((error) => {
        if (!(error instanceof OutcomeUnknown)) throw error;
        throw new OutcomeUnknown(
          `${error.message} The ${use} key may have been rotated nevertheless. Rotating it again does no harm.`,
        );
      });
      print(options, answer, () =>
        use === 'master'
          ? `The master key is now ${answer.key_id}; ${answer.rewrapped} stored secrets were re-wrapped. Keep a copy of the key file separately from the store's backups.`
          : use === 'secrets'
            ? `Secrets are sealed to the key ${answer.kid} from now on. What was sealed before can be opened until ${answer.opens_until}.`
            : use === 'log'
              ? `The log key ${answer.kid} signs from the next checkpoint on.`
              : `The ${use} key ${answer.kid} is published now and signs from ${answer.signs_from}.`,
      );
    });
}
