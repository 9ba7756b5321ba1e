import { type Command, InvalidArgumentError } from 'commander';

/** The broker's long polls end after this, and clients give up on a tool after 60 seconds (docs/clients). */
const MOST_SECONDS = 50;

const seconds = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > MOST_SECONDS)
    throw new InvalidArgumentError(`0 to ${MOST_SECONDS}.`);
  return value;
};

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve an agent’s tools to an MCP client over standard input and output')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--wait <seconds>', 'how long a held call waits for a person before it answers', seconds, MOST_SECONDS)
    .action(async ({ profile, wait }: { profile?: string; wait: number }, command: Command) => {
      const { serveAgent } = await import('../../mcp/stdio/serve-agent.ts');
      const version = command.parent?.version() ?? 'unknown';
      serveAgent({ environment: process.env, profile, waitSeconds: wait, version });
    });
}
