/** @module The options and help of `convert` and `explain`, which are loaded on demand. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { ALL_INPUT_TYPES, listOutputs } from '../tables/formats.ts';
import { describeFlag, flagName, OPTION_NAMES, optionRow } from '../tables/options.ts';
import { type CliContext, CliError } from './context.ts';
import type { ConvertFlags } from './convert.ts';
import type { ExplainFlags } from './explain.ts';
import { namesOutput } from './habits.ts';

const CONVERT_USAGE = `  imagemill convert photo.jpg photo.webp
  imagemill convert photos -o small --width 800
See imagemill convert --help.`;

const CONVERT_HELP = `
Examples:
  $ imagemill convert photo.jpg -o photo.webp
  $ imagemill convert photo.jpg half.webp --width 50%
  $ imagemill convert photo.jpg logo.svg -o web/ --format png --width 1200
  $ imagemill convert photos -o small/ --quality 70       # keeps sub-folders
  $ imagemill convert scan-*.jpg -o receipts.pdf          # one PDF of all
  $ imagemill convert frames -o moving.gif --delay 100    # one frame for each
  $ imagemill convert photo.jpg -o square.jpg --width 300 --height 300 --fit cover
  $ imagemill convert photo.jpg -o mail.jpg --max-bytes 200k
  $ imagemill convert photos -o web --format smallest     # each in the best format
  $ imagemill convert 'photos/**/*.tiff' -o pdf/ --format pdf --json
  $ imagemill convert photos -o shop --preset product --presets presets.yaml
  $ curl -s https://example.com/a.png | imagemill convert - -o - > a.webp
  $ imagemill convert photos -o small --update            # resumes: only new and changed files
  $ imagemill convert photos -o small --update --report report.csv    # why each file failed
  $ imagemill convert photos -o small --update --dry-run  # what would be done
  $ imagemill convert photos -o small --update --shard 2/4
  $ imagemill convert photos -o small --update --url http://mill:3000 -j 16

All formats are read and written for which this machine has the tools: "imagemill
doctor" lists them, and what the others need. EXTRA_INPUTS and EXTRA_OUTPUTS can
list fewer.

In folders and patterns, a file with neither the extension nor the content of an
image is skipped, and one with only the extension fails. If several results have
the same name, the second one gets " (2)"; with --update and --shard, all results
keep the extension of their source: a.jpg.webp, a.png.webp. Without --force, no
file is overwritten, except results of earlier runs with --update.

--update finds earlier results in the index .imagemill of the output folder, so it
is needed from the first run. Without the index, only --force replaces them. Each
run tries the files again that have failed, and ends with 1 if they still do.

On a terminal, a progress bar and the files that failed are printed, and at the end
a summary, which also says what differs from the images, and how often.
Memory and disk space of this machine limit the size of images, and a conversion
takes at most 10 minutes (CONVERT_TIMEOUT_MS).

Exit status: 0 if all files were converted; 1 if some were not, or the command
ended before all were; 2 if no conversion was started (wrong arguments or
settings, or no tools); 128 plus its number after a signal, such as 130 after
Ctrl-C.`;

const EXPLAIN_HELP = `
Examples:
  $ imagemill explain photo.jpg --format webp --width 800
  $ imagemill explain photo.jpg --format webp --width 800 --commands
  $ imagemill explain photos --json | jq -r '[.input, .key] | @tsv'

Exit status: 0 if all files could be converted; 1 if some could not; 2 if the
arguments or settings are wrong, or this machine cannot convert.`;

/** Groups of options in the short help: an example, and what the main options are for. */
const SHORT_HELP = [
  {
    example: 'Image:       $ imagemill convert photo.jpg photo.webp --width 1200 -q 70',
    options: {
      format: 'webp, png, jpg, avif, pdf, smallest, …',
      quality: 'of webp, jpg and others (default: 80)',
      width: 'maximum width in pixels, or 50%',
      height: 'maximum height',
      fit: 'how to fit into width and height',
      rotate: 'turn clockwise',
      crop: 'part of the image, in pixels or percent',
      watermark: 'image to put on each result',
      maxBytes: 'maximum size of a result',
      metadata: 'what to keep (default: none)',
      preset: 'options of this name in --presets',
    },
  },
  {
    example: "Files:       $ imagemill convert a.jpg logo.svg -o web/ --name '{name}-{width}w'",
    options: {
      output: 'file, folder, or - for standard output',
      force: 'overwrite existing files',
      name: 'names of results, with {name} and {width}',
      preserveTimes: 'keep the modification time of the source',
    },
  },
  {
    example: 'Many files:  $ imagemill convert photos -o small --width 800 --update',
    options: {
      update: 'only what has changed since the last run',
      delete: 'delete results without a source',
      watch: 'convert files as they arrive',
      jobs: 'conversions at the same time',
      url: 'let an instance convert',
    },
  },
  {
    example: 'Checks:      $ imagemill convert scans -o archive -f png --verify pixels',
    options: {
      dryRun: 'only print what would be done',
      verify: 'compare each result with its source',
      report: 'table of all files, as CSV',
      json: 'an object per line, with digests',
      quiet: 'print errors only',
    },
  },
] as const;
const FLAGS_WIDTH = 36;

/** Formats the most important options, each in one line. */
function formatShortHelp(command: Command): string {
  const { options } = command;
  let more = options.length;
  const groups = SHORT_HELP.map(({ example, options: shown }) => {
    const lines = Object.entries(shown).flatMap(([name, purpose]) => {
      const flags = options.find((option) => option.attributeName() === name)?.flags;
      return flags ? `  ${flags.padEnd(FLAGS_WIDTH)}${purpose}` : [];
    });
    more -= lines.length;
    return [example, ...lines].join('\n');
  });
  const rest = `imagemill convert --help all  has ${more} more options, examples and details.`;
  return `${[`Usage: imagemill convert ${command.usage()}`, ...groups, rest].join('\n\n')}\n`;
}

/** Adds the commands. `onExit` receives the exit status; `showsAll` is set for `--help all`. */
export function addConvert(
  program: Command,
  context: CliContext,
  onExit: (status: number) => void,
  showsAll: boolean,
): void {
  withImageOptions(
    program.command('convert').optionsGroup('Image:'),
    'that of -o or of the preset, else webp',
  )
    .usage('[options] <input...> -o <output>, or <input> <output>')
    .description('convert files and folders, with the tools of this machine or running instances')
    .argument('[input...]', "files, folders, patterns in quotes ('photos/**/*.jpg'), or - for standard input")
    .optionsGroup('Files:')
    .option('-o, --output <path>', 'a file, a folder (created if missing), or - for standard output')
    .option('--force', 'overwrite existing files')
    .option(
      '--combine',
      'one PDF, TIFF, GIF or WebP of all inputs, as also with several inputs and -o album.pdf',
    )
    .option('--delay <ms>', 'time of each frame of a combined GIF or WebP, 20 to 600000 (default: 500)')
    .option('--loop <count>', 'how often a combined GIF or WebP is played; 0 is forever (default: 0)')
    .option(
      '--name <pattern>',
      "name of each result, with {name}, {width}, {height} and {number} (default: '{name}')",
    )
    .option('--preserve-times', 'give each result the modification time of its source')
    .option('--keep-extension', 'keep the extension of the source: a.jpg.webp')
    .option('--safe-names', 'replace what Windows cannot store in names of files and folders')
    .option('--max-file-size <size>', 'maximum size of a source, such as 50MB (default: none)')
    .option('--max-pixels <pixels>', 'maximum width × height of a source and of a result (default: 1000M)')
    .optionsGroup('Many files:')
    .option(
      '--update',
      'convert only what has changed since the last run with --update: files, options or tools',
    )
    .option('--delete', 'delete results whose source no longer exists; implies --update')
    .option('--yes', 'delete without confirmation')
    .option('--watch', 'keep running, and convert files that arrive in the folders; implies --update')
    .option(
      '-j, --jobs <number>',
      'concurrent conversions (default: CONCURRENCY, else CPUs + 1; CPUs with --url)',
    )
    .option('--shard <I/N>', 'convert the I-th of N equal parts, the same on every machine')
    .option(
      '--url <address>',
      'send the files to this instance, with the API key in IMAGEMILL_API_KEY; may be repeated',
      collect,
    )
    .optionsGroup('Checks:')
    .option('--dry-run', 'print what would be converted and deleted, and do nothing')
    .option(
      '--verify <pixels|visual>',
      'compare each result with its source by other decoders before it is written',
    )
    .option(
      '--report <file>',
      'write a table of all files, as CSV, over an earlier one; for --verify, a folder for pictures',
    )
    .option('--json', 'print one JSON object per line and file, with SHA-256 digests')
    .option('--quiet', 'print errors only; with --json, also the summary')
    .option('--verbose', 'print a line for each result, also beside the progress bar of a terminal')
    .configureHelp(showsAll ? {} : { formatHelp: formatShortHelp })
    .addHelpText('after', showsAll ? CONVERT_HELP : '')
    .action(async (args: string[], { output: given, ...flags }: Partial<ConvertFlags>) => {
      // With --combine, `*.jpg` without -o would replace the last image by the others.
      const takesLast = given === undefined && (await isOutput(args, flags.force && !flags.combine));
      const inputs = takesLast ? args.slice(0, -1) : args;
      const output = takesLast ? args.at(-1) : given;
      if (inputs.length === 0 || output === undefined)
        throw new CliError(`${explainMissing(inputs, flags.combine)}:\n${CONVERT_USAGE}`);
      const { convert } = await import('./convert.ts');
      onExit(await convert(inputs, { ...flags, output, isLast: takesLast }, context));
    });

  withImageOptions(program.command('explain'), 'that of the preset, else webp')
    .description('print what a conversion would do, and why, without converting')
    .argument('<input...>', 'files, folders or patterns')
    .option('--combine', 'explain the parts of one file; for frames, with --width and --height')
    .option('--commands', 'print the command lines, to run by hand')
    .option('--json', 'print one JSON object per line and file')
    .addHelpText('after', EXPLAIN_HELP)
    .action(async (inputs: string[], flags: ExplainFlags) => {
      const { explain } = await import('./explain.ts');
      onExit(await explain(inputs, flags, context));
    });
}

/**
 * Returns whether the last of several arguments is the output, as for other converters:
 * `convert a.jpg b.webp`. It has the extension of one, and is no pattern and no image that exists,
 * unless `force` permits to replace that.
 */
async function isOutput(args: readonly string[], force = false): Promise<boolean> {
  const [last = ''] = args.slice(1).slice(-1);
  if (!namesOutput(last)) return false;
  const { createImageTest, isPattern } = await import('./convert/find-images.ts');
  if (!existsSync(last)) return !isPattern(last);
  if (force) return true;
  const { assertImage } = createImageTest(ALL_INPUT_TYPES);
  return assertImage(last).then(
    () => false,
    () => true,
  );
}

/** Returns what is missing without `-o`, and that `--force` replaces a possible output. */
function explainMissing(inputs: readonly string[], combine = false): string {
  if (inputs.length === 0) return 'Name the images to convert';
  const [, last = ''] = inputs;
  if (combine || inputs.length > 2 || !namesOutput(last) || !existsSync(last))
    return 'Set the output with -o';
  return `${last} exists. Set the output with -o, or use --force to replace this image by the result`;
}

/** Flags that mean `yes` without a value: `--trim`. */
const YES_FLAGS = OPTION_NAMES.filter((name) => 'yes' in optionRow(name).type).map(flagName);
const YES_VALUE = /^(?:yes|no|true|false|on|off|[\d.]+%?)$/i;

/** Adds `yes` to flags without a value behind them, so that no file name becomes the value. */
export const addYes = (args: readonly string[]): string[] =>
  args.map((arg, at) =>
    YES_FLAGS.includes(arg) && !YES_VALUE.test(args[at + 1] ?? '') ? `${arg}=yes` : arg,
  );

/** Adds the options that determine a result. */
function withImageOptions(command: Command, defaultFormat: string): Command {
  command
    .option('--preset <name>', 'options of this name in --presets; other options take precedence')
    .option('--presets <file>', 'YAML or JSON file with presets (default: PRESETS_FILE)')
    .option(
      '-f, --format <name>',
      `${listOutputs('or')}, or smallest: that of the smallest result (default: ${defaultFormat})`,
    );
  return OPTION_NAMES.reduce((all, name) => all.option(...describeFlag(name)), command)
    .option('--keep-metadata', 'the same as --metadata all')
    .option('--watermark <file>', 'an image to put on each result, at most 10 MiB and 25 megapixels');
}

/** Collects the values of an option that may be repeated. */
const collect = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value];
