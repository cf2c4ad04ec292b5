/** @module Scripts that complete commands, options and values in a shell. */
import type { Command, Option } from 'commander';
import { SMALLEST } from '../conversion/request/conflicts.ts';
import { ALL_OUTPUT_TYPES } from '../tables/formats.ts';

/** Returns the values of an option, such as `<all|first>`. Others get file names from the shell. */
const valuesOf = ({ long, flags }: Option): readonly string[] =>
  long === '--format' ? [...ALL_OUTPUT_TYPES, SMALLEST] : (/<(.+\|.+)>/.exec(flags)?.[1]?.split('|') ?? []);

/** Functions that return the script for a shell. It starts no program: completion is immediate. */
export const COMPLETION_SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

interface Path {
  readonly words: readonly string[];
  readonly command: Command;
}

function listPaths(command: Command, words: readonly string[] = []): Path[] {
  const inner = subcommands(command).flatMap((sub) => listPaths(sub, [...words, sub.name()]));
  return [{ words, command }, ...inner];
}

const help = (command: Command) => command.createHelp();
const optionsOf = (command: Command) => help(command).visibleOptions(command);
const subcommands = (command: Command): Command[] => help(command).visibleCommands(command);
/** Returns the words that can follow a command: its subcommands, or the values of its arguments. */
const nextWords = (command: Command): string[] => [
  ...subcommands(command).map((sub) => sub.name()),
  ...command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
];

function bashScript(program: Command): string {
  // The longest path comes first, because the first match applies.
  const cases = listPaths(program)
    .reverse()
    .map(({ words, command }) => {
      const options = optionsOf(command).flatMap(({ short, long }) => [short, long].filter(Boolean));
      return `    '${[...words, ''].join(' ')}'*) names='${nextWords(command).join(' ')}' options='${options.join(' ')}' ;;`;
    });
  const values = listPaths(program)
    .flatMap(({ command }) => optionsOf(command))
    .filter((option) => valuesOf(option).length > 0)
    .map((option) => `    ${option.long}) values='${valuesOf(option).join(' ')}' ;;`);
  return `# Completion for imagemill. Add to ~/.bashrc: source <(imagemill completion bash)
_imagemill() {
  local current=\${COMP_WORDS[COMP_CWORD]} names='' options='' values=''
  local before="\${COMP_WORDS[*]:1:$((COMP_CWORD - 1))} "
  case "\${before# }" in
${cases.join('\n')}
  esac
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${[...new Set(values)].join('\n')}
  esac
  if [[ $values ]]; then names=$values
  elif [[ $current == -* ]]; then names=$options
  fi
  COMPREPLY=($(compgen -W "$names" -- "$current"))
}
complete -o default -F _imagemill imagemill
`;
}

/** zsh reads it when it starts, or at the first completion, which it also has to answer. */
function zshScript(program: Command): string {
  const script = bashScript(program)
    .replaceAll('bashrc', 'zshrc')
    .replace('completion bash', 'completion zsh');
  return `#compdef imagemill
autoload -U +X bashcompinit && bashcompinit
${script}[[ $funcstack[1] != _imagemill ]] || _bash_complete -o default -F _imagemill
`;
}

function fishScript(program: Command): string {
  const quote = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const lines = listPaths(program).flatMap(({ words, command }) => {
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`);
    const names = nextWords(command);
    const none = names.length > 0 ? [`not __fish_seen_subcommand_from ${names.join(' ')}`] : [];
    const when = quote([...seen, ...none].join('; and '));
    return [
      ...(names.length > 0 ? [`complete -c imagemill -f -n ${when} -a ${quote(names.join(' '))}`] : []),
      ...subcommands(command).map(
        (sub) => `complete -c imagemill -f -n ${when} -a ${sub.name()} -d ${quote(sub.description())}`,
      ),
      ...optionsOf(command).map((option) => {
        const { short, long, description, required, optional } = option;
        const list = valuesOf(option).join(' ');
        const value = list ? `-xa ${quote(list)}` : required || optional ? '-r' : '';
        return `complete -c imagemill -n ${when} ${short ? `-s ${short.slice(1)} ` : ''}-l ${long?.slice(2)} ${value} -d ${quote(description)}`;
      }),
    ];
  });
  return `# Completion for imagemill. Save as ~/.config/fish/completions/imagemill.fish\n${lines.join('\n')}\n`;
}
