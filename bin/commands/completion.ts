import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from '../completion/scripts.ts';
import { treeOf } from '../completion/tree.ts';

const HOW: Record<Shell, string> = {
  bash: 'eval "$(agent-broker completion bash)" in ~/.bashrc',
  zsh: 'eval "$(agent-broker completion zsh)" in ~/.zshrc, after compinit',
  fish: 'agent-broker completion fish > ~/.config/fish/completions/agent-broker.fish',
};

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script by which a shell completes the words of this program')
    .addArgument(new Argument('<shell>', 'which').choices([...SHELLS]))
    .addHelpText('after', `\n${SHELLS.map((shell) => `${shell.padEnd(6)}${HOW[shell]}`).join('\n')}`)
    .action((shell: Shell) => {
      process.stdout.write(completionScript(shell, treeOf(program)));
    });
}
