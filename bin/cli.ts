/** The command line. Each command is loaded lazily, so that `--help` and `token` are fast. */
import { Command, CommanderError } from 'commander';
import { addAgentCommands } from './commands/agent.ts';
import { addBackupCommand } from './commands/backup.ts';
import { addConnectCommand } from './commands/connect.ts';
import { addDemoCommand } from './commands/demo.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addGitCredentialCommand } from './commands/git-credential.ts';
import { addGitSetupCommand } from './commands/git-setup.ts';
import { addGitHubAppCommand } from './commands/github-app.ts';
import { addGovernanceCommands } from './commands/governance.ts';
import { addKeysCommand } from './commands/keys.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addMigrateCommand } from './commands/migrate.ts';
import { addOwnerCommands } from './commands/owner.ts';
import { addSecretCommands } from './commands/secret.ts';
import { addServeCommand } from './commands/serve.ts';
import { addTokenCommand } from './commands/token.ts';
import { addVerifyCommand } from './commands/verify.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { packageVersion } from './package-version.ts';

/**
 * Runs one command. Sets the exit code: 0, 1 refused or failed, 2 wrong usage. `stop`: aborted on a signal, for long-running
 * commands.
 */
export async function main(argv: readonly string[], stop?: AbortSignal): Promise<void> {
  const program = new Command('agent-broker')
    .description('A governance broker for AI agents: the agent holds its own key, the broker holds everything else.')
    .version(packageVersion())
    .showHelpAfterError('(add --help for the usage)')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  addServeCommand(program, stop);
  addDemoCommand(program);
  addGovernanceCommands(program);
  addOwnerCommands(program);
  addAgentCommands(program);
  addSecretCommands(program);
  addGitHubAppCommand(program);
  addConnectCommand(program);
  addTokenCommand(program);
  addMcpCommand(program);
  addGitSetupCommand(program);
  addGitCredentialCommand(program);
  addDoctorCommand(program);
  addVerifyCommand(program);
  addKeysCommand(program);
  addMigrateCommand(program);
  addBackupCommand(program);
  for (const command of allCommands(program)) command.exitOverride();
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${message}\n`);
    if (!(error instanceof CommandFailed || error instanceof WrongUsage) && process.env.LOG_LEVEL === 'debug')
      process.stderr.write(`${error instanceof Error ? error.stack : ''}\n`);
    process.exitCode = error instanceof WrongUsage ? 2 : 1;
  }
}

function allCommands(command: Command): Command[] {
  return command.commands.flatMap((sub) => [sub, ...allCommands(sub)]);
}
