import type { Command } from 'commander';
import { CommandFailed } from '../failure.ts';

export function addGitCredentialCommand(program: Command): void {
  program
    .command('git-credential')
    .description(
      'credential helper of git: signs a fresh agent token for the repositories of the broker, and for nothing else',
    )
    .argument('<operation>', 'as git passes it: get; any other does nothing')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--at <url>', 'address where the broker serves git, if that is a separate host')
    .action(async (operation: string, options: { profile?: string; at?: string }) => {
      const { answerGit } = await import('../git/credential.ts');
      const { ProfileError, readProfile } = await import('../../mcp/profile.ts');
      const { AgentKeyError, agentSigner } = await import('../../mcp/client/signer.ts');
      const { readFileSync } = await import('node:fs');
      const asked = readFileSync(0, 'utf8');
      // A token is signed for each request, so there is nothing to store or erase. A helper ignores unknown operations without output
      // (gitcredentials(7)).
      if (operation !== 'get') return;
      try {
        const profile = readProfile(process.env, options.profile);
        process.stdout.write(answerGit(asked, options.at ?? profile.url, agentSigner(profile), Date.now()));
      } catch (error) {
        if (!(error instanceof ProfileError || error instanceof AgentKeyError)) throw error;
        // Stops git from prompting for a password: no person could type a token.
        process.stdout.write('quit=1\n');
        throw new CommandFailed(error.message);
      }
    });
}
