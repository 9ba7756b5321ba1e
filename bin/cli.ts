/** The command line. Each command is loaded lazily, so that `--help` and `token` are fast. */
import { Command, CommanderError } from 'commander';
import { visible } from '../broker/console/static/visible.js';
import { groupByTopic } from './command-groups.ts';
import { addActivityCommand } from './commands/activity.ts';
import { addAddCommand } from './commands/add.ts';
import { addAddMcpCommand } from './commands/add-mcp.ts';
import { addAgentCommands } from './commands/agent.ts';
import { addAuditSinkCommands } from './commands/audit-sink.ts';
import { addBackupCommand } from './commands/backup.ts';
import { addChannelCommands } from './commands/channel.ts';
import { addCompletionCommand } from './commands/completion.ts';
import { addConnectCommand } from './commands/connect.ts';
import { addConnectionCommands } from './commands/connection.ts';
import { addDecideCommands } from './commands/decide.ts';
import { addDemoCommand } from './commands/demo.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addGitCredentialCommand } from './commands/git-credential.ts';
import { addGitSetupCommand } from './commands/git-setup.ts';
import { addGitHubAppCommand } from './commands/github-app.ts';
import { addGovernanceCommands } from './commands/governance.ts';
import { addGrantCommands } from './commands/grant.ts';
import { addInboxCommand } from './commands/inbox.ts';
import { addKeysCommand } from './commands/keys.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addMigrateCommand } from './commands/migrate.ts';
import { addOrganisationCommands } from './commands/organisation.ts';
import { addOwnerCommands } from './commands/owner.ts';
import { addPipelineCommands } from './commands/pipeline.ts';
import { addPlatformCommands } from './commands/platform.ts';
import { addPolicyCommands } from './commands/policy.ts';
import { addRequestAccessCommand } from './commands/request-access.ts';
import { addRequestConsentCommand } from './commands/request-consent.ts';
import { addRestoreCommands } from './commands/restore.ts';
import { addRunCommand } from './commands/run.ts';
import { addSecretCommands } from './commands/secret.ts';
import { addServeCommand } from './commands/serve.ts';
import { addStandingCommands } from './commands/standing.ts';
import { addTokenCommand } from './commands/token.ts';
import { addVerifyCommand } from './commands/verify.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { packageVersion } from './package-version.ts';

/** Builds the command line with every command. `stop`: aborted on a signal, for long-running commands. */
export function commandLine(stop?: AbortSignal): Command {
  const program = new Command('agent-broker')
    .description('A governance broker for AI agents: the agent holds its own key, the broker holds everything else.')
    .version(packageVersion())
    .showHelpAfterError('(add --help for the usage)')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  addServeCommand(program, stop);
  addDemoCommand(program, stop);
  addGovernanceCommands(program);
  addOwnerCommands(program);
  addOrganisationCommands(program);
  addPipelineCommands(program);
  addAgentCommands(program);
  addInboxCommand(program);
  addDecideCommands(program);
  addStandingCommands(program);
  addActivityCommand(program);
  addGrantCommands(program);
  addPolicyCommands(program);
  addChannelCommands(program);
  addAuditSinkCommands(program);
  addPlatformCommands(program);
  addConnectionCommands(program);
  addSecretCommands(program);
  addAddCommand(program);
  addAddMcpCommand(program);
  addGitHubAppCommand(program);
  addConnectCommand(program);
  addTokenCommand(program);
  addMcpCommand(program);
  addRequestAccessCommand(program);
  addRequestConsentCommand(program);
  addGitSetupCommand(program);
  addGitCredentialCommand(program);
  addDoctorCommand(program);
  addVerifyCommand(program);
  addKeysCommand(program);
  addMigrateCommand(program);
  addBackupCommand(program);
  addRestoreCommands(program);
  addCompletionCommand(program);
  // Commands that are added after this would take their options only before their subcommands.
  program.enablePositionalOptions();
  addRunCommand(program);
  for (const command of allCommands(program)) command.exitOverride();
  groupByTopic(program);
  return program;
}

/** Runs one command. Sets the exit code: 0; 1 for refused or failed; 2 for wrong usage. */
export async function main(argv: readonly string[], stop?: AbortSignal): Promise<void> {
  try {
    await commandLine(stop).parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${visible(message)}\n`);
    if (!(error instanceof CommandFailed || error instanceof WrongUsage) && process.env.LOG_LEVEL === 'debug')
      process.stderr.write(`${error instanceof Error ? error.stack : ''}\n`);
    process.exitCode = error instanceof WrongUsage ? 2 : 1;
  }
}

function allCommands(command: Command): Command[] {
  return command.commands.flatMap((sub) => [sub, ...allCommands(sub)]);
}
