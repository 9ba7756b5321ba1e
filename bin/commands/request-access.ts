import type { Command } from 'commander';
import { wholeNumber } from '../duration.ts';
import type { RequestOptions } from '../request-access.ts';

const MAX_WAIT_SECONDS = 600;
/** Shorter than the time limit of agent programs for a command. */
const WAIT_SECONDS = 50;

export function addRequestAccessCommand(program: Command): void {
  program
    .command('request-access')
    .description(
      'request a scope from the owners, as the agent of this run or of a profile; repeating it does not create another request',
    )
    .argument('<platform>', 'id of the platform')
    .argument('[scope]', 'the scope that is needed; left out: the platform as a whole')
    .option('--reason <text>', 'reason, shown to the owner who decides')
    .option(
      '--wait <seconds>',
      'how long to wait for the decision, 0 to 600',
      wholeNumber(0, MAX_WAIT_SECONDS),
      WAIT_SECONDS,
    )
    .option(
      '--profile <file>',
      'profile of the agent (or AGENT_BROKER_PROFILE), instead of the run that this is part of',
    )
    .option('--json', 'print JSON')
    .action(async (platform: string, scope: string | undefined, options: RequestOptions) => {
      const { requestAccess } = await import('../request-access.ts');
      await requestAccess({ platform, scope }, options);
    });
}
