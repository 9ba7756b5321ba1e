import type { Command } from 'commander';
import { withConnection } from '../connection.ts';
import { lastingSeconds, listed } from '../duration.ts';
import type { GrantOptions } from '../grants/grants.ts';

const withTerms = (command: Command): Command =>
  withConnection(command)
    .option('--scopes <scope,…>', 'all that it shall have there', listed)
    .option('--repos <owner/name,…>', 'only in these repositories; owner/* for all of an owner; all: no limit', listed)
    .option('--recipients <address,…>', 'only to these; @acme.example for all of a domain; anybody: no limit', listed)
    .option('--expires <when>', 'until when: 30d, 12h, a moment such as 2027-01-31T18:00:00Z, or never', lastingSeconds)
    .option('--approval', 'every call waits for an approval')
    .option('--no-approval', 'only the rules say which calls wait')
    .option('--connection <name>', 'the connection whose grant is meant')
    .option('--json', 'print JSON');

export function addGrantCommands(program: Command): void {
  const grant = program.command('grant').description('what agents may do on platforms');
  const load = () => import('../grants/grants.ts');

  withConnection(grant.command('list <agent>').description('what an agent is granted; the agent by its name or id'))
    .option('--json', 'print JSON')
    .action(async (agent: string, options: GrantOptions) => (await load()).listGrants(agent, options));

  withTerms(grant.command('add <agent> <platform>').description('grant an agent something on a platform')).action(
    async (agent: string, platform: string, options: GrantOptions) => (await load()).addGrant(agent, platform, options),
  );

  withTerms(
    grant
      .command('change <agent> <platform>')
      .description('change what an agent is granted there; what is not said stays as it is'),
  )
    .option('--add-scopes <scope,…>', 'what it shall have in addition', listed)
    .action(async (agent: string, platform: string, options: GrantOptions) =>
      (await load()).changeGrant(agent, platform, options),
    );

  withConnection(
    grant.command('remove <agent> <platform>').description('take away what an agent is granted there; asks'),
  )
    .option('--connection <name>', 'only the grant on this connection')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (agent: string, platform: string, options: GrantOptions) =>
      (await load()).removeGrant(agent, platform, options),
    );
}
