import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from '../completion/scripts.ts';
import { treeOf } from '../completion/tree.ts';
import { PROGRAM } from '../program-name.ts';

/** Writes the scripts into files: a shell does not start in the checkout, and starting a shell should not start another program. */
const HOW: Record<Shell, string> = {
  bash: `${PROGRAM} completion bash > ~/.agent-broker.bash && echo '. ~/.agent-broker.bash' >> ~/.bashrc`,
  zsh: `${PROGRAM} completion zsh > ~/.agent-broker.zsh && echo '. ~/.agent-broker.zsh' >> ~/.zshrc   # after compinit`,
  fish: `${PROGRAM} completion fish > ~/.config/fish/conf.d/agent-broker.fish`,
};

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'which').choices([...SHELLS]))
    .addHelpText('after', `\n${SHELLS.map((shell) => `${shell.padEnd(6)}${HOW[shell]}`).join('\n')}`)
    .action((shell: Shell) => {
      process.stdout.write(completionScript(shell, treeOf(program)));
    });
}
