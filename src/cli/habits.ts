/** @module Hints for the calls and options of ImageMagick, vips, cwebp, ffmpeg, cp and others. */
import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { shellWords } from '../base/shell.ts';
import { INPUTS, OUTPUT_NAMES } from '../tables/formats.ts';
import { CliError } from './context.ts';

/** A command of commander, which only `program.ts` and the files of its commands import. */
interface Command {
  readonly name: () => string;
  readonly options: readonly { readonly short?: string; readonly long?: string }[];
}

/** What to do instead of options of other programs. */
const HABITS: Readonly<Record<string, string>> = {
  'use --width': '-w -W --max-width',
  'use --width and --height, or --scale':
    '-resize --resize -size --size -s -thumbnail --thumbnail -sample -geometry -vf -filter:v',
  'use --fit cover with --width and --height': '-extent --smartcrop',
  'use --position': '-gravity --gravity',
  'use --quality': '-Q --Q -q:v -qscale:v -compression_level',
  'use --flip horizontal': '-flop --flop',
  'use --greyscale': '-grayscale --grayscale -colorspace --colorspace',
  'use --background': '-flatten --flatten',
  'use --dpi': '-density --density',
  'use --force': '-y --overwrite -overwrite',
  'use -o': '-d -path --path -out --out --dir --outdir --output-dir',
  'use --jobs': '-mt -threads --threads',
  'use --quiet': '-loglevel -hide_banner',
  'use --verbose': '-v',
  'name the file without an option': '-i --input',
  'leave it out: a folder includes its sub-folders': '-r -R --recursive',
  'leave it out: metadata is removed unless --metadata keeps it': '-strip --strip --no-metadata',
  'leave it out: images are turned upright': '-auto-orient --auto-orient --autorot --autorotate',
  'leave it out: no file is overwritten without --force': '-n --no-clobber',
};

const HINTS = new Map(
  Object.entries(HABITS).flatMap(([hint, options]) => options.split(' ').map((option) => [option, hint])),
);

/**
 * Explains a call without a command, such as `imagemill a.jpg b.webp`, and an option that another
 * program has for what a command does, such as `-resize`.
 *
 * @throws {CliError} if there is one
 */
export function explainHabits(args: readonly string[], commands: readonly Command[]): void {
  const [word = ''] = args;
  const command = commands.find((one) => one.name() === word);
  if (command && !['convert', 'explain'].includes(word)) return;
  const isCall =
    !command && (isImageName(word) || existsSync(word) || (word.startsWith('-') && args.some(isImageName)));
  if (!command && !isCall) return;
  const own = (command ?? commands.find((one) => one.name() === 'convert')) as Command;
  const end = args.indexOf('--');
  const hints = args.slice(0, end < 0 ? args.length : end).flatMap((arg) => findHint(arg, own) ?? []);
  if (command && hints.length === 0) return;
  const call = isCall ? [`To convert, name the command:\n  ${shellWords(withOutput(args))}`] : [];
  throw new CliError([...call, ...hints].join('\n'));
}

function findHint(arg: string, { options }: Command): string | undefined {
  const [name = ''] = arg.split('=');
  const isOwn = (flag: string) => options.some(({ short, long }) => flag === short || flag === long);
  if (!name.startsWith('-') || isOwn(name)) return undefined;
  const hint = HINTS.get(name) ?? (isOwn(`-${name}`) ? `use -${name}` : undefined);
  return hint && `Unknown option ${name}: ${hint}.`;
}

const nameOf = (path: string): string => extname(path).slice(1).toLowerCase();

/** Returns whether an argument has the extension of an output. */
export const namesOutput = (path: string): boolean => OUTPUT_NAMES.has(nameOf(path));

const isImageName = (path: string): boolean =>
  namesOutput(path) || Object.values(INPUTS).some(({ names }) => names.includes(nameOf(path)));

/** Returns the words of a conversion, with an output if they have none. */
function withOutput(args: readonly string[]): string[] {
  const hasOutput =
    args.some((arg) => /^(?:-o|--output)/.test(arg)) ||
    (args.length > 1 && namesOutput(args.at(-1) as string));
  return ['imagemill', 'convert', ...args, ...(hasOutput ? [] : ['-o', 'results/'])];
}
