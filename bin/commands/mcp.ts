import { type Command, InvalidArgumentError } from 'commander';
import { packageVersion } from '../package-version.ts';
import { MOST_WAIT_SECONDS } from '../quick-mcp.ts';

const seconds = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > MOST_WAIT_SECONDS)
    throw new InvalidArgumentError(`0 to ${MOST_WAIT_SECONDS}.`);
  return value;
};

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve an agent’s tools to an MCP client over standard input and output')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--wait <seconds>', 'how long a held call waits for a person before it answers', seconds, MOST_WAIT_SECONDS)
    .action(async ({ profile, wait }: { profile?: string; wait: number }) => {
      const { serveAgent } = await import('../../mcp/stdio/serve-agent.ts');
      serveAgent({ environment: process.env, profile, waitSeconds: wait, version: packageVersion() });
    });
}
