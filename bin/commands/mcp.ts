import type { Command } from 'commander';

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve an agent’s tools to an MCP client over standard input and output')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .action(async ({ profile: file }: { profile?: string }, command: Command) => {
      const { readProfile } = await import('../../mcp/profile.ts');
      const { agentSigner } = await import('../../mcp/client/signer.ts');
      const { signedFetch } = await import('../../mcp/client/signed-fetch.ts');
      const { serveTools } = await import('../../mcp/stdio/serve-tools.ts');
      const { repeatsInMemory } = await import('../../mcp/tools/repeats.ts');
      const profile = readProfile(process.env, file);
      serveTools({
        send: signedFetch({ url: profile.url, token: agentSigner(profile) }),
        url: profile.url,
        repeats: repeatsInMemory(),
        version: command.parent?.version() ?? 'unknown',
        onerror: (error) => process.stderr.write(`${error.message}\n`),
      });
    });
}
