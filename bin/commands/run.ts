import type { Command } from 'commander';
import { visible } from '../../broker/console/static/visible.js';
import { wholeNumber } from '../duration.ts';
import type { RunOptions } from '../run/run.ts';

/** The largest value that `X-Svc-Wait` accepts (broker/http/proxy/request.ts). */
const MAX_WAIT_SECONDS = 120;

const oneMore = (label: string, labels: readonly string[]): string[] => [...labels, label];

export function addRunCommand(program: Command): void {
  program
    .command('run')
    .usage('[options] -- <command> [args]')
    .description('run an unmodified command whose requests to platforms go through the broker')
    .argument('<command...>', 'the command to run, after --')
    // What follows the command is the command's own, also without --.
    .passThroughOptions()
    .option('--connection <label>', 'a connection to use, instead of all (repeatable)', oneMore, [])
    .option('--proxy', 'also act as the proxy of the command, for tools without a base URL setting')
    .option('--port <connection[=port]>', 'a port that leads to the platform of a connection (repeatable)', oneMore, [])
    .option(
      '--strict',
      'leave out all variables that look like credentials, by name or content; with --proxy, refuse hosts of no granted platform',
    )
    .option(
      '--wait <seconds>',
      'how long a call waits that a person has to approve, 0 to 120 (otherwise as its connection says, or 25)',
      wholeNumber(0, MAX_WAIT_SECONDS),
    )
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option(
      '--caller <source:id>',
      'person whom all requests are for, such as slack:U024BE7LH (or AGENT_BROKER_CALLER)',
    )
    .option('--caller-file <file>', 'file with an assertion about that person (or AGENT_BROKER_CALLER_FILE)')
    .option(
      '--verbose',
      'say which connections are used, which variables may be credentials, and which hosts are not governed',
    )
    .action(async (command: string[], options: RunOptions) => {
      const { run } = await import('../run/run.ts');
      process.exitCode = await run(command, options, (line) => process.stderr.write(`${visible(line)}\n`));
    });
}
