import type { Command } from 'commander';
import { CallerProblem } from '../../mcp/caller-problem.ts';
import { type CallerOptions, configuredCaller } from '../../mcp/configured-caller.ts';
import { wholeNumber } from '../duration.ts';
import { WrongUsage } from '../failure.ts';
import { packageVersion } from '../package-version.ts';
import { MAX_WAIT_SECONDS } from '../quick-mcp.ts';

type Options = CallerOptions & { profile?: string; wait: number };

/**
 * Returns the configured caller.
 *
 * @throws WrongUsage
 */
function configuredOrWrong(options: CallerOptions): ReturnType<typeof configuredCaller> {
  try {
    return configuredCaller(options, process.env);
  } catch (error) {
    throw error instanceof CallerProblem ? new WrongUsage(error.message) : error;
  }
}

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve an agent’s tools to an MCP client over standard input and output')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option(
      '--wait <seconds>',
      'how long a held call waits for a decision before it returns',
      wholeNumber(0, MAX_WAIT_SECONDS),
      MAX_WAIT_SECONDS,
    )
    .option(
      '--caller <source:id>',
      'person on whose behalf calls are made, such as slack:U024BE7LH (or AGENT_BROKER_CALLER)',
    )
    .option('--caller-file <file>', 'file with an assertion about that person (or AGENT_BROKER_CALLER_FILE)')
    .action(async ({ profile, wait, caller, callerFile }: Options) => {
      const { serveAgent } = await import('../../mcp/stdio/serve-agent.ts');
      const configured = configuredOrWrong({ caller, callerFile });
      serveAgent({ environment: process.env, profile, configured, waitSeconds: wait, version: packageVersion() });
    });
}
