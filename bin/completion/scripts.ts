/**
 * Completion scripts: plain text that names every command and option, so that completing starts no program. They complete `agent-broker …`,
 * and `npx agent-broker …` unless something else completes npx already.
 */
import { SERVER_NAME as NAME } from '../server-entry.ts';
import type { Flag, Node } from './tree.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, tree: readonly Node[]): string {
  if (shell === 'fish') return fish(tree);
  return shell === 'zsh'
    ? `whence complete > /dev/null || { autoload -Uz bashcompinit && bashcompinit }\n${bash(tree, '[ -n "$_comps[npx]" ]')}`
    : bash(tree, 'complete -p npx > /dev/null 2>&1');
}

/** Quotes a text: all three shells take single quotes literally. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const namesOf = (flags: readonly Flag[]): string[] => flags.flatMap(({ names }) => names);

/** `taken`: a shell test that is true when a completion for npx exists already. */
function bash(tree: readonly Node[], taken: string): string {
  const paths = tree.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const words = tree.map(
    ({ path, commands, flags, words }) =>
      `    ${quoted(path)}) echo ${quoted([...commands.map(({ name }) => name), ...words, ...namesOf(flags)].join(' '))} ;;`,
  );
  const values = tree.flatMap(({ path, flags }) =>
    flags.flatMap(({ names, value }) => {
      if (value === undefined) return [];
      const said = typeof value === 'object' ? `echo ${quoted(`words ${value.words.join(' ')}`)}` : `echo ${value}`;
      return [`    ${names.map((name) => quoted(`${path} ${name}`)).join('|')}) ${said} ;;`];
    }),
  );
  return `_agent_broker_words() {
  case "$1" in
${words.join('\n')}
  esac
}
_agent_broker_value() {
  case "$1 $2" in
${values.join('\n')}
  esac
}
_agent_broker() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' i word value=''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [ -n "$value" ]; then value=''; continue; fi
    case "$word" in -*) value="$(_agent_broker_value "$path" "$word")"; continue ;; esac
    case "\${path:+$path }$word" in ${paths.join('|')}) path="\${path:+$path }$word" ;; esac
  done
  case "$value" in
    path) COMPREPLY=($(compgen -f -- "$current")) ;;
    any) COMPREPLY=() ;;
    words*) COMPREPLY=($(compgen -W "\${value#words }" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$(_agent_broker_words "$path")" -- "$current")) ;;
  esac
}
_agent_broker_npx() {
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ${NAME} -- "\${COMP_WORDS[1]}"))
  elif [ "\${COMP_WORDS[1]}" = ${NAME} ]; then
    COMP_WORDS=("\${COMP_WORDS[@]:1}") COMP_CWORD=$((COMP_CWORD - 1))
    _agent_broker
  else
    COMPREPLY=()
  fi
}
complete -o filenames -F _agent_broker ${NAME}
${taken} || complete -o default -o filenames -F _agent_broker_npx npx
`;
}

function fish(tree: readonly Node[]): string {
  const paths = tree.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const takes = tree.flatMap(({ path, flags }) =>
    namesOf(flags.filter(({ value }) => value !== undefined)).map((name) => quoted(`${path} ${name}`)),
  );
  const lines = tree.flatMap(({ path, commands, flags, words }) => {
    const at = `complete -c $program -n ${quoted(`__agent_broker_at ${quoted(path)}`)}`;
    return [
      ...commands.map(({ name, description }) => `${at} -a ${quoted(name)} -d ${quoted(description)}`),
      ...(words.length > 0 ? [`${at} -a ${quoted(words.join(' '))}`] : []),
      ...flags.map((flag) => `${at} ${fishFlag(flag)} -d ${quoted(flag.description)}`),
    ];
  });
  return `function __agent_broker_words
    set -l words (commandline -opc)
    if test "$words[1]" = npx
        test "$words[2]" = ${NAME}
        or return 1
        set words $words[2..-1]
    end
    printf '%s\\n' $words
end
function __agent_broker_at
    set -l words (__agent_broker_words)
    or return 1
    set -l path ''
    set -l value 0
    for word in $words[2..-1]
        if test $value = 1
            set value 0
        else if string match -q -- '-*' $word
            contains -- "$path $word" ${takes.join(' ')}
            and set value 1
        else
            set -l next (string trim -- "$path $word")
            contains -- $next ${paths.join(' ')}
            and set path $next
        end
    end
    test "$path" = "$argv[1]"
end
complete -c ${NAME} -f
complete -c npx -n 'test (count (commandline -opc)) = 1' -a ${NAME}
complete -c npx -n __agent_broker_words -f
for program in ${NAME} npx
${lines.map((line) => `    ${line}`).join('\n')}
end
`;
}

function fishFlag({ names, value }: Flag): string {
  const named = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ');
  if (value === undefined) return named;
  if (value === 'path') return `${named} -r -F`;
  return typeof value === 'object' ? `${named} -x -a ${quoted(value.words.join(' '))}` : `${named} -x`;
}
