import type { Command } from 'commander';
import { wholeNumber } from '../duration.ts';
import type { ConsentOptions } from '../request-consent.ts';

const MAX_WAIT_SECONDS = 1800;

export function addRequestConsentCommand(program: Command): void {
  program
    .command('request-consent')
    .description(
      'print the link with which a person connects their account, before a run or a call for them; for platforms with one token per person',
    )
    .argument('<platform>', 'id of the platform')
    .option('--caller <source:id>', 'person who is to consent, such as slack:U024BE7LH (or AGENT_BROKER_CALLER)')
    .option('--caller-file <file>', 'file with an assertion about that person (or AGENT_BROKER_CALLER_FILE)')
    .option('--connection <label>', 'connection, where the agent has grants on several of the platform')
    .option(
      '--wait <seconds>',
      'how long to wait until the person has consented, 0 to 1800',
      wholeNumber(0, MAX_WAIT_SECONDS),
      0,
    )
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--json', 'print JSON')
    .action(async (platform: string, options: ConsentOptions) => {
      const { requestConsent } = await import('../request-consent.ts');
      await requestConsent(platform, options);
    });
}
