/** The command line as data for completion scripts: commands with their options and arguments, as they are declared. */
import type { Argument, Command, Option } from 'commander';

export type Flag = {
  /** `--name`, and `-n` if the option has a short form. */
  names: string[];
  description: string;
  /** Undefined when the option takes no value. */
  value: Value | undefined;
};

/** Possible values: one of these words, a path, or any text. */
export type Value = { words: string[] } | 'path' | 'any';

export type Node = {
  /** The words of the command, without the program's name: `agent create`. */
  path: string;
  commands: { name: string; description: string }[];
  flags: Flag[];
  /** Possible values of the arguments. */
  words: string[];
};

/** Returns every command, the program itself first; hidden commands are left out. */
export function treeOf(program: Command, path: readonly string[] = []): Node[] {
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  const node = {
    path: path.join(' '),
    commands: commands.map((one) => ({ name: one.name(), description: one.description() })),
    flags: help.visibleOptions(program).map(flagOf),
    words: program.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  };
  return [
    node,
    ...commands.filter((one) => one.name() !== 'help').flatMap((one) => treeOf(one, [...path, one.name()])),
  ];
}

const flagOf = (option: Option): Flag => ({
  names: [option.long, option.short].filter((name) => name !== undefined),
  description: option.description,
  value: option.required || option.optional ? valueFor(option) : undefined,
});

function valueFor({ argChoices, flags }: Pick<Option, 'flags'> & Pick<Argument, 'argChoices'>): Value {
  if (argChoices) return { words: argChoices };
  return /<(?:file|folder|path)>/.test(flags) ? 'path' : 'any';
}
