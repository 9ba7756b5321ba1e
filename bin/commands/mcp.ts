import type { Command } from 'commander';

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve an agent’s tools to an MCP client over standard input and output')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .action(async ({ profile }: { profile?: string }, command: Command) => {
      const { serveAgent } = await import('../../mcp/stdio/serve-agent.ts');
      serveAgent({ environment: process.env, profile, version: command.parent?.version() ?? 'unknown' });
    });
}
