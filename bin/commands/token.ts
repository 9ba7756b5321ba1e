import type { Command } from 'commander';
import { wholeNumber } from '../duration.ts';
import { CommandFailed } from '../failure.ts';

export function addTokenCommand(program: Command): void {
  program
    .command('token')
    .description('print a fresh agent token (JWT, RS256), signed with the agent’s own key')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--ttl <seconds>', 'lifetime, at most 300', wholeNumber(1, 300), 60)
    .option('--json', 'print JSON')
    .action(async (options: { profile?: string; ttl: number; json?: boolean }) => {
      const { ProfileError, readProfile } = await import('../../mcp/profile.ts');
      const { AgentKeyError, agentSigner } = await import('../../mcp/client/signer.ts');
      try {
        const profile = readProfile(process.env, options.profile);
        const token = agentSigner(profile)(options.ttl);
        process.stdout.write(
          options.json ? `${JSON.stringify({ token, url: profile.url, agent_id: profile.agentId })}\n` : `${token}\n`,
        );
      } catch (error) {
        if (error instanceof ProfileError || error instanceof AgentKeyError) throw new CommandFailed(error.message);
        throw error;
      }
    });
}
