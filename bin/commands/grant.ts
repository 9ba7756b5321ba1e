import type { Command } from 'commander';
import { withConnection } from '../connection.ts';
import { lifetimeSeconds, listed } from '../duration.ts';
import type { GrantOptions } from '../grants/grants.ts';

const withTerms = (command: Command): Command =>
  withConnection(command)
    .option('--scopes <scope,…>', 'all scopes of the grant', listed)
    .option('--repos <owner/name,…>', 'only these repositories; owner/* for all of an owner; all: no limit', listed)
    .option(
      '--recipients <address,…>',
      'only these recipients; @acme.example for all of a domain; anybody: no limit',
      listed,
    )
    .option('--expires <when>', 'expiry: 30d, 12h, a time such as 2027-01-31T18:00:00Z, or never', lifetimeSeconds)
    .option('--approval', 'every call needs an approval')
    .option('--no-approval', 'no approval by the grant; only rules hold calls')
    .option('--connection <name>', 'the connection of the grant')
    .option('--json', 'print JSON');

export function addGrantCommands(program: Command): void {
  const grant = program.command('grant').description('grants of agents on platforms');
  const load = () => import('../grants/grants.ts');

  withConnection(grant.command('list <agent>').description('list the grants of an agent, by its name or id'))
    .option('--json', 'print JSON')
    .action(async (agent: string, options: GrantOptions) => (await load()).listGrants(agent, options));

  withTerms(grant.command('add <agent> <platform>').description('add a grant on a platform')).action(
    async (agent: string, platform: string, options: GrantOptions) => (await load()).addGrant(agent, platform, options),
  );

  withTerms(
    grant
      .command('change <agent> <platform>')
      .description('change a grant; settings that are not given stay unchanged'),
  )
    .option('--add-scopes <scope,…>', 'what it shall have in addition', listed)
    .action(async (agent: string, platform: string, options: GrantOptions) =>
      (await load()).changeGrant(agent, platform, options),
    );

  withConnection(grant.command('remove <agent> <platform>').description('remove a grant; asks for confirmation'))
    .option('--connection <name>', 'only the grant on this connection')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (agent: string, platform: string, options: GrantOptions) =>
      (await load()).removeGrant(agent, platform, options),
    );
}
