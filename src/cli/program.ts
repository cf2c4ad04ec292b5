/** @module The command line: commands, options and help. Each command loads its modules when it is called. */
import { Command, CommanderError } from 'commander';
import { type CliContext, CliError } from './context.ts';
import type { Flags } from './convert/options.ts';
import { addRegress } from './regress.ts';

/** Exit status for invalid arguments, as in shells and most programs. */
const EXIT_USAGE = 2;

const SERVE_HELP = `
Examples:
  $ imagemill
  $ PORT=8080 MAX_FILE_BYTES=52428800 imagemill serve

Exit status: 0 after SIGTERM or SIGINT, when all is finished; 1 something went
wrong; 2 this machine or these settings cannot serve.`;

const CONVERT_HELP = `
Examples:
  $ imagemill convert photo.jpg -o photo.webp
  $ imagemill convert photo.jpg logo.svg -o web/ --format png --width 1200
  $ imagemill convert photos -o small/ --quality 70       # keeps sub-folders
  $ imagemill convert 'photos/**/*.tiff' -o pdf/ --format pdf --json
  $ curl -s https://example.com/a.png | imagemill convert - -o - > a.webp
  $ imagemill convert photos -o small --update            # only what changed
  $ imagemill convert photos -o small --update --shard 2/4
  $ imagemill convert photos -o small --update --url http://mill:3000 -j 16

In folders and patterns, files that are no images are passed over. Of several
results with the same name the second gets " (2)"; with --update and --shard
none is converted. Without --force no file is replaced, unless the index that
--update keeps in the output folder has it.

Exit status: 0 all were converted; 1 some were not; 2 nothing could be tried
(wrong arguments or settings, no tools); 130 or 143 ended by Ctrl-C or SIGTERM.`;

const DOCTOR_HELP = `
It tries everything that serving needs with the settings of the environment:
the tools and their policy, what shuts them in, a conversion, letters in
drawings, room for working files, REDIS_URL.

Examples:
  $ imagemill doctor
  $ MAGICK_BIN=/opt/magick imagemill doctor
  $ imagemill doctor --json
  $ imagemill doctor --sizing      # docs/sizing.md says what the figures mean

Exit status: 0 it can serve, with warnings or without; 2 it cannot.`;

/** Collects the values of an option that may be repeated. */
const collect = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value];

/**
 * Parses the arguments and runs the command.
 *
 * @param args command-line arguments, without the paths of Node.js and the program
 * @returns the exit status
 */
export async function runProgram(args: readonly string[], context: CliContext): Promise<number> {
  let status = 0;
  const program = new Command('imagemill')
    .description('Converts images with ImageMagick and librsvg: as a service, or here and now.')
    .version(context.version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'imagemill: ')) })
    .addHelpText('after', '\nSettings come from the environment; the README has a table of them.');

  program
    .command('serve', { isDefault: true })
    .description('serve over HTTP (what happens without a command)')
    .addHelpText('after', SERVE_HELP)
    .allowExcessArguments()
    .action(async (_flags, { args: [word] }: Command) => {
      // As the default command, it receives every argument that is not a command.
      if (word !== undefined)
        throw new CliError(`There is no command "${word}": see imagemill --help.`, EXIT_USAGE);
      const { serve } = await import('./serve.ts');
      status = await serve(context);
    });

  program
    .command('convert')
    .description('convert files here and now, with the limits of the service')
    .argument('<input...>', "files, folders, patterns in quotes ('photos/**/*.jpg'), or - for standard input")
    .requiredOption(
      '-o, --output <path>',
      'a file, a folder (made when there is none), or - for standard output',
    )
    .option('-f, --format <name>', "webp, png, jpg, gif, bmp or pdf (default: -o's extension, else webp)")
    .option('-q, --quality <1-100>', 'of webp, jpg and pdf (default: 80)')
    .option('--width <pixels>', 'at most so wide; only drawings grow')
    .option('--height <pixels>', 'at most so high')
    .option('--frames <all|first>', 'of an animation (default: all where the output moves)')
    .option('--pages <all|first>', 'of a TIFF that becomes a PDF (default: all)')
    .option('--background <colour>', 'what transparency is laid over, #rgb or #rrggbb (default: white)')
    .option('--keep-metadata', 'keep EXIF, IPTC, XMP and the colour profile')
    .option('-j, --jobs <number>', 'conversions at once (default: CONCURRENCY, else the processors)')
    .option('--force', 'replace files that exist')
    .option('--quiet', 'say nothing but what went wrong')
    .option('--json', 'one JSON object a line and file')
    .option('--report <file>', 'write a table of all files, as CSV')
    .option('--update', 'convert only what is new or has changed since the last run with --update')
    .option('--delete', 'delete results whose source is gone; implies --update')
    .option('--yes', 'let --delete ask no question')
    .option('--watch', 'go on with files that arrive in the folders; implies --update')
    .option('--shard <I/N>', 'convert the I-th of N equal parts, the same on every machine')
    .option('--url <address>', 'send the files to this instance; may be repeated', collect)
    .addHelpText('after', CONVERT_HELP)
    .action(async (inputs: string[], flags: Flags) => {
      const { convert } = await import('./convert.ts');
      status = await convert(inputs, flags, context);
    });

  program
    .command('doctor')
    .description('say what this machine has, what it lacks, and what to do about that')
    .option('--json', 'one JSON object')
    .option('--sizing', 'measure for a minute how many conversions per second it does')
    .addHelpText('after', DOCTOR_HELP)
    .action(async (flags: { json?: boolean; sizing?: boolean }) => {
      const { doctor } = await import('./doctor.ts');
      status = await doctor(flags, context);
    });

  addRegress(program, context, (exitStatus) => {
    status = exitStatus;
  });

  try {
    await program.parseAsync(args, { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE; // commander has printed the error
    if (!(error instanceof CliError)) throw error;
    for (const line of error.message.split('\n')) console.error(`imagemill: ${line}`);
    return error.status;
  }
}
