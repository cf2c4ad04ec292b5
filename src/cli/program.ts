/** @module The command line: commands, options and help. Each command loads its modules when it is called. */
import { Argument, Command, CommanderError } from 'commander';
import { completionScript, SHELLS } from './completion.ts';
import { type CliContext, CliError } from './context.ts';
import type { Flags } from './convert/options.ts';
import type { ExplainFlags } from './explain.ts';
import { addRegress } from './regress.ts';
import type { ResponsiveFlags } from './responsive.ts';

/** Minimum version, as in package.json. Since 22.17, `glob` of node:fs/promises prints no warning. */
export const MIN_NODE = '22.17';

/** Returns whether a version of Node.js, such as `22.17.0`, is supported. */
export function supportsNode(version: string): boolean {
  return version.localeCompare(MIN_NODE, 'en', { numeric: true }) >= 0;
}

/** Exit status for invalid arguments, as in shells and most programs. */
const EXIT_USAGE = 2;

const SERVE_HELP = `
Examples:
  $ imagemill
  $ PORT=8080 MAX_FILE_BYTES=52428800 imagemill serve

SIGHUP makes it read API_KEYS_FILE again, or ends it if there is none.

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, when all requests are finished;
1 if it cannot listen on HOST and PORT, if the disk of TEMP_DIR is full, or after
an unexpected error; 2 if this machine or these settings cannot serve.`;

const CONVERT_USAGE = `  imagemill convert photo.jpg -o photo.webp
  imagemill convert photos -o small --width 800
See imagemill convert --help.`;

const CONVERT_HELP = `
Examples:
  $ imagemill convert photo.jpg -o photo.webp
  $ imagemill convert photo.jpg logo.svg -o web/ --format png --width 1200
  $ imagemill convert photos -o small/ --quality 70       # keeps sub-folders
  $ imagemill convert photo.jpg -o square.jpg --width 300 --height 300 --fit cover
  $ imagemill convert photo.jpg -o mail.jpg --max-bytes 200000
  $ imagemill convert 'photos/**/*.tiff' -o pdf/ --format pdf --json
  $ curl -s https://example.com/a.png | imagemill convert - -o - > a.webp
  $ imagemill convert photos -o small --update            # resumes: only new and changed files
  $ imagemill convert photos -o small --update --report report.csv    # why each file failed
  $ imagemill convert photos -o small --update --dry-run  # what would be done
  $ imagemill convert photos -o small --update --shard 2/4
  $ imagemill convert photos -o small --update --url http://mill:3000 -j 16

EXTRA_INPUTS=all and EXTRA_OUTPUTS=all enable all formats that this machine
supports: input of heic, jxl, jp2, psd and cur; output of avif, jxl, tiff and ico.

In folders and patterns, files that are not images are skipped. If several
results have the same name, the second one gets " (2)"; with --update and --shard,
they keep the extensions of their sources: a.jpg.webp, a.png.webp. Without --force,
no file is overwritten, except results of earlier runs with --update.

On a terminal, a progress bar and the files that failed are printed, and a summary
at the end. Memory and disk space of this machine limit the size of images, and a
conversion takes at most 10 minutes (CONVERT_TIMEOUT_MS).

Exit status: 0 if all files were converted; 1 if some were not, or the command
ended before all were; 2 if no conversion was started (wrong arguments or
settings, or no tools); 128 plus its number after a signal, such as 130 after
Ctrl-C.`;

const IDENTIFY_HELP = `
Examples:
  $ imagemill identify photo.jpg drawing.svg
  $ imagemill identify --json photos/*.jpg | jq -r '[.file, .width, .height] | @tsv'

Exit status: 0 if all files are images, also if some cannot be converted; 1 if
some are not images or cannot be read; 2 if this machine cannot convert images.`;

const RESPONSIVE_HELP = `
The image is read once for all files. It is not enlarged: widths beyond its own give
one file of its own width.

Examples:
  $ imagemill responsive photo.jpg -o web/
  $ imagemill responsive photo.jpg --widths 400,800 --formats webp,jpg --sizes '(min-width: 60em) 50vw, 100vw'

Exit status: 0 if all files were written; 1 if the image cannot be converted or a
file exists; 2 for invalid options, or if this machine cannot convert images.`;

const DOCTOR_HELP = `
Tests everything that the service needs, with the settings of the environment:
the tools, their policy and sandbox, a conversion to each format, SVG text in
several scripts, disk space for working files, and REDIS_URL.

Examples:
  $ imagemill doctor
  $ MAGICK_BIN=/opt/magick imagemill doctor
  $ imagemill doctor --json
  $ imagemill doctor --sizing      # docs/sizing.md explains the figures

Exit status: 0 if this machine can serve, with or without warnings; 2 if it
cannot.`;

const KEY_HELP = `
Only the digest of the key is stored. Give the key to the client: it sends
"Authorization: Bearer KEY". SIGHUP makes a running server read the file again.

Examples:
  $ imagemill key shop >> /etc/imagemill/keys
  $ imagemill key forum --limit 600 >> /etc/imagemill/keys`;

const KEY_EXPECTED =
  'Expected a name of 1 to 64 letters, digits, and . _ @ -, and a limit from 0 to 9999999.';
const COMPLETION_HELP = `
Examples:
  $ source <(imagemill completion bash)          # also in ~/.bashrc
  $ source <(imagemill completion zsh)           # also in ~/.zshrc
  $ imagemill completion fish > ~/.config/fish/completions/imagemill.fish`;

const VERIFY_HELP = `
Examples:
  $ imagemill convert scans -o archive --format png --receipts archive.jsonl
  $ imagemill verify archive.jsonl --against /backup/archive

Exit status: 0 if all files are as recorded; 1 if not; 2 if it cannot be checked.`;

const EXPLAIN_HELP = `
Examples:
  $ imagemill explain photo.jpg --format webp --width 800
  $ imagemill explain photo.jpg --format webp --width 800 --commands
  $ imagemill explain photos --json | jq -r '[.input, .key] | @tsv'

Exit status: 0 if all files could be converted; 1 if some could not; 2 if the
arguments or settings are wrong, or this machine cannot convert.`;

/** Adds the options that determine a result. */
function withImageOptions(command: Command): Command {
  return command
    .option(
      '-f, --format <name>',
      "webp, png, jpg, gif, bmp, pdf, or one of EXTRA_OUTPUTS (default: -o's extension, else webp)",
    )
    .option('-q, --quality <1-100>', 'quality of webp, jpg, pdf, avif and jxl (default: 80)')
    .option(
      '--crop <l,t,w,h>',
      'part of the upright image, in pixels or percent (25%,0,50%,100%), before the fit',
    )
    .option('--width <pixels>', 'maximum width; without --enlarge, only SVGs are enlarged')
    .option('--height <pixels>', 'maximum height')
    .option(
      '--fit <inside|cover|contain|fill>',
      'how to fit the image into --width and --height (default: inside)',
    )
    .option(
      '--position <place>',
      'part that cover keeps, or place in the box of contain: top, "right top" … (default: center)',
    )
    .option('--enlarge', 'allow enlargement')
    .option(
      '--lossless',
      'write WebP without loss, and with --keep-metadata JPEG XL from which a JPEG can be restored',
    )
    .option('--max-bytes <bytes>', 'maximum size of webp, jpg, avif and jxl: lowers the quality as needed')
    .option('--frames <all|first>', 'frames of an animation (default: all if the output can be animated)')
    .option('--pages <all|first>', 'pages of a TIFF that is converted to PDF or TIFF (default: all)')
    .option(
      '--background <colour>',
      'colour that replaces transparency and fills the borders of contain, #rgb, #rrggbb or a CSS name (default: white)',
    )
    .option('--keep-metadata', 'keep EXIF, IPTC, XMP and the colour profile');
}

/** Collects the values of an option that may be repeated. */
const collect = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value];

/**
 * Parses the arguments and runs the command.
 *
 * @param args command-line arguments, without the paths of Node.js and the program
 * @param nodeVersion version of Node.js, such as `24.21.0`
 * @returns the exit status
 */
export async function runProgram(
  args: readonly string[],
  context: CliContext,
  nodeVersion = process.versions.node,
): Promise<number> {
  let status = 0;
  const program = new Command('imagemill')
    .description('Converts images with ImageMagick and librsvg, as a service or on the command line.')
    .version(context.version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'imagemill: ')) })
    .addHelpText('after', '\nSettings are environment variables: see docs/configuration.md.')
    // The modules of the commands need features of this version, and would fail with a stack trace.
    .hook('preAction', () => {
      if (supportsNode(nodeVersion)) return;
      const needed = `Node.js ${MIN_NODE} or later is needed, and this is ${nodeVersion}`;
      throw new CliError(`${needed}: https://nodejs.org`, EXIT_USAGE);
    });

  program
    .command('serve', { isDefault: true })
    .description('start the server (default command)')
    .addHelpText('after', SERVE_HELP)
    .allowExcessArguments()
    .action(async (_flags, { args: [word] }: Command) => {
      // As the default command, it receives every argument that is not a command.
      if (word !== undefined)
        throw new CliError(`Unknown command "${word}": see imagemill --help.`, EXIT_USAGE);
      const { serve } = await import('./serve.ts');
      status = await serve(context);
    });

  withImageOptions(program.command('convert'))
    .description('convert files and folders, with the tools of this machine or running instances')
    .argument('[input...]', "files, folders, patterns in quotes ('photos/**/*.jpg'), or - for standard input")
    .option('-o, --output <path>', 'a file, a folder (created if missing), or - for standard output')
    .option('-j, --jobs <number>', 'concurrent conversions (default: CONCURRENCY, else the number of CPUs)')
    .option('--force', 'overwrite existing files')
    .option('--keep-extension', 'keep the extension of the source: a.jpg.webp')
    .option('--safe-names', 'replace what Windows cannot store in names of files and folders')
    .option('--dry-run', 'print what would be converted and deleted, and do nothing')
    .option('--quiet', 'print errors only')
    .option('--verbose', 'print a line for each result, also beside the progress bar of a terminal')
    .option('--json', 'print one JSON object per line and file')
    .option('--report <file>', 'write a table of all files, as CSV; for --verify, a folder for pictures')
    .option(
      '--verify <pixels|visual>',
      'compare each result with its source by other decoders before it is written',
    )
    .option('--receipts <file>', 'append a line with digests, options, key and versions for each result')
    .option('--key <file>', 'sign the receipts with this Ed25519 key (PEM)')
    .option('--update', 'convert only files that are new or have changed since the last run with --update')
    .option('--delete', 'delete results whose source no longer exists; implies --update')
    .option('--yes', 'delete without confirmation')
    .option('--watch', 'keep running, and convert files that arrive in the folders; implies --update')
    .option('--max-file-size <bytes>', 'maximum size of a source, such as 50M (default: none)')
    .option('--max-pixels <pixels>', 'maximum width × height of a source and of a result (default: 1000M)')
    .option('--shard <I/N>', 'convert the I-th of N equal parts, the same on every machine')
    .option('--url <address>', 'send the files to this instance; may be repeated', collect)
    .addHelpText('after', CONVERT_HELP)
    .action(async (inputs: string[], { output, ...flags }: Partial<Flags>) => {
      if (inputs.length === 0 || output === undefined) {
        const missing = inputs.length === 0 ? 'Name the images to convert' : 'Set the output with -o';
        throw new CliError(`${missing}:\n${CONVERT_USAGE}`, EXIT_USAGE);
      }
      const { convert } = await import('./convert.ts');
      status = await convert(inputs, { ...flags, output }, context);
    });

  withImageOptions(program.command('explain'))
    .description('print what a conversion would do, and why, without converting')
    .argument('<input...>', 'files, folders or patterns')
    .option('--commands', 'print the command lines, to run by hand')
    .option('--json', 'print one JSON object per line and file')
    .addHelpText('after', EXPLAIN_HELP)
    .action(async (inputs: string[], flags: ExplainFlags) => {
      const { explain } = await import('./explain.ts');
      status = await explain(inputs, flags, context);
    });

  program
    .command('verify')
    .description('check files against the receipts of convert --receipts')
    .argument('<receipts>')
    .option('--against <folder>', 'folder with the results (default: where they were written)')
    .option('--key <file>', 'require the signature of this Ed25519 key (PEM, public)')
    .addHelpText('after', VERIFY_HELP)
    .action(async (path: string, flags: { against?: string; key?: string }) => {
      const { verifyReceipts } = await import('./receipts.ts');
      status = await verifyReceipts(path, flags);
    });

  program.command('verify-worker', { hidden: true }).action(async () => {
    const { runVerifyWorker } = await import('./convert/verify-worker.ts');
    status = await runVerifyWorker();
  });

  program
    .command('identify')
    .description('describe images by their headers: format, size, colours and metadata')
    .argument('<files...>', 'images; "-" is standard input')
    .option('--json', 'print a JSON object for each file, as POST /identify returns it')
    .addHelpText('after', IDENTIFY_HELP)
    .action(async (files: string[], flags: { json?: boolean }) => {
      const { identify } = await import('./identify.ts');
      status = await identify(files, flags, context);
    });

  program
    .command('responsive')
    .description('write one image in several widths and formats, and print the <picture> element')
    .argument('<image>', 'the image')
    .option('--widths <list>', 'widths in pixels', '320,640,1280')
    .option(
      '--formats <list>',
      'avif, webp, jpg, png or gif; the last one is for browsers that show no other',
      'avif,webp,jpg',
    )
    .option('--sizes <text>', 'value of the attribute sizes', '100vw')
    .option('-o, --output <folder>', 'folder of the files', '.')
    .option('-q, --quality <1-100>', 'quality', '80')
    .option('--force', 'overwrite existing files')
    .option('--json', 'print a JSON object with the files and the element')
    .addHelpText('after', RESPONSIVE_HELP)
    .action(async (image: string, flags: ResponsiveFlags) => {
      const { responsive } = await import('./responsive.ts');
      status = await responsive(image, flags, context);
    });

  program
    .command('doctor')
    .description('check whether this machine can run the service, and how to fix problems')
    .option('--json', 'print a JSON object')
    .option('--sizing', 'measure for a minute how many conversions per second this machine does')
    .addHelpText('after', DOCTOR_HELP)
    .action(async (flags: { json?: boolean; sizing?: boolean }) => {
      const { doctor } = await import('./doctor.ts');
      status = await doctor(flags, context);
    });

  program
    .command('key')
    .description('make an API key: print its line for API_KEYS_FILE, and the key to standard error')
    .argument('<name>', 'name of the client: letters, digits, and . _ @ -')
    .option('--limit <number>', 'requests per minute, 0 for no limit (default: RATE_LIMIT_PER_MINUTE)')
    .addHelpText('after', KEY_HELP)
    .action(async (name: string, { limit }: { limit?: string }) => {
      const { createApiKey } = await import('../api-keys.ts');
      const made = createApiKey(name, limit);
      if (!made) throw new CliError(KEY_EXPECTED, EXIT_USAGE);
      console.log(made.line);
      console.error(made.key);
    });

  addRegress(program, context, (exitStatus) => {
    status = exitStatus;
  });

  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'shell that reads the script').choices(SHELLS))
    .addHelpText('after', COMPLETION_HELP)
    .action((shell: (typeof SHELLS)[number]) => {
      process.stdout.write(completionScript(shell, program));
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
