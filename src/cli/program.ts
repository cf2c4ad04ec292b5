/** @module Commands, options and help. Each command loads its modules when it is called. */
import { Argument, Command, CommanderError } from 'commander';
import { sanitizeForDisplay } from '../base/text.ts';
import { COMPLETION_SCRIPTS } from './completion.ts';
import { type CliContext, CliError, EXIT_CANNOT_RUN } from './context.ts';
import { addConvert, addYes } from './convert-commands.ts';
import type { DoctorFlags } from './doctor.ts';
import { explainHabits } from './habits.ts';
import { addRegress } from './regress.ts';

/** Minimum version, as in package.json. Since 22.17, `glob` of node:fs/promises does not warn. */
const MIN_NODE = '22.17';

function supportsNode(version: string): boolean {
  const [have, need] = [version, MIN_NODE].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = need.findIndex((number, index) => number !== have[index]); // Intl takes 9 ms for its first comparison
  return at === -1 || (have[at] ?? 0) > (need[at] as number);
}

const SERVE_HELP = `
Examples:
  $ imagemill
  $ PORT=8080 MAX_FILE_BYTES=50MB imagemill serve

SIGHUP makes it read API_KEYS_FILE again, or ends it if there is none.

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, when all requests are finished;
1 if it cannot listen on HOST and PORT, if the disk of TEMP_DIR is full, or after
an unexpected error; 2 if this machine or these settings cannot serve.`;

const IDENTIFY_HELP = `
Examples:
  $ imagemill identify photo.jpg drawing.svg
  $ imagemill identify --json photos | jq -r '[.file, .width, .height] | @tsv'
  $ imagemill identify --reveal website/images

With --reveal, files that give nothing away are not listed.

Exit status: 0 if all files are images, also if some cannot be converted; 1 if
some are not images or cannot be read; 2 if this machine cannot convert images.`;

const DOCTOR_HELP = `
Tests everything that the service needs, with the settings of the environment:
the tools, their policy and sandbox, a conversion to each format, fonts for
several scripts, disk space for working files, and REDIS_URL. Settings of the
file take precedence, as with EnvironmentFile= of systemd.

Examples:
  $ imagemill doctor
  $ MAGICK_BIN=/opt/magick imagemill doctor
  $ imagemill doctor --env docker/.env
  $ imagemill doctor --json
  $ imagemill doctor --attack
  $ imagemill doctor --attack --only codec

--attack sends hostile files and requests to services of its own, with the
settings of this machine and shorter time limits. It takes up to 30 s, uses no
network and leaves nothing behind.

Exit status: 0 if this machine can serve, with or without warnings; 2 if it
cannot. With --attack: 0 if all attacks were stopped, 1 if not, 2 if the service
does not start.`;

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

/**
 * Parses the arguments and runs the command.
 *
 * @param args command-line arguments, without the paths of Node.js and the program
 * @param nodeVersion version of Node.js, such as `24.21.0`; by default that of this process
 * @returns the exit status
 */
export async function runProgram(
  args: readonly string[],
  context: CliContext,
  nodeVersion?: string,
): Promise<number> {
  let status = 0;
  const onExit: OnExit = (exitStatus) => {
    status = exitStatus;
  };
  const showsAll = ['-h', '--help'].includes(args.at(-2) ?? '') && args.at(-1) === 'all';
  const program = createProgram(context, onExit, showsAll, nodeVersion);
  try {
    explainHabits(args, program.commands);
    await program.parseAsync(addYes(args), { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CANNOT_RUN; // commander has printed the error
    if (!(error instanceof CliError)) throw error;
    for (const line of error.message.split('\n')) console.error(`imagemill: ${printable(line)}`);
    return EXIT_CANNOT_RUN;
  }
}

/** Replaces control characters of arguments in a line. */
const printable = (line: string): string => sanitizeForDisplay(line, Number.POSITIVE_INFINITY);

type OnExit = (status: number) => void;

/** @param showsAll whether the help of `convert` lists all options */
export function createProgram(
  context: CliContext,
  onExit: OnExit = () => {},
  showsAll = true,
  nodeVersion = process.versions.node,
): Command {
  const program = new Command('imagemill')
    .description('Converts images with ImageMagick and librsvg, as a service or on the command line.')
    .version(context.version)
    .exitOverride()
    .configureOutput({
      outputError(text, write) {
        const lines = text.replace(/^error: /, 'imagemill: ').split('\n');
        write(lines.map(printable).join('\n'));
      },
    })
    .addHelpText('after', '\nSettings are environment variables: see docs/configuration.md.')
    // The modules of the commands need features of this version, and would fail with a stack trace.
    .hook('preAction', () => {
      if (supportsNode(nodeVersion)) return;
      const needed = `Node.js ${MIN_NODE} or later is needed, and this is ${nodeVersion}`;
      throw new CliError(`${needed}: https://nodejs.org`);
    });
  for (const add of [addServe, addConvert, addIdentify, addDoctor, addKey, addRegress, addCompletion])
    add(program, context, onExit, showsAll);
  return program;
}

function addServe(program: Command, context: CliContext, onExit: OnExit): void {
  program
    .command('serve', { isDefault: true })
    .description('start the server (default command)')
    .addHelpText('after', SERVE_HELP)
    .allowExcessArguments()
    .action(async (_flags, { args: [word] }: Command) => {
      // As the default command, it receives every argument that is not a command.
      if (word !== undefined) throw new CliError(`Unknown command "${word}": see imagemill --help.`);
      const { serve } = await import('./serve.ts');
      onExit(await serve(context));
    });
}

function addIdentify(program: Command, context: CliContext, onExit: OnExit): void {
  program
    .command('identify')
    .description('describe images by their headers: format, size, colours and metadata')
    .argument('<input...>', 'files, folders, patterns in quotes, or - for standard input')
    .option('--json', 'print a JSON object for each file, as POST /identify returns it')
    .option('--reveal', 'print what the metadata gives away: place, time, camera, owner, thumbnail')
    .addHelpText('after', IDENTIFY_HELP)
    .action(async (files: string[], flags: { json?: boolean; reveal?: boolean }) => {
      const { identify } = await import('./identify.ts');
      onExit(await identify(files, flags, context));
    });
}

function addDoctor(program: Command, context: CliContext, onExit: OnExit): void {
  program
    .command('doctor')
    .description('check whether this machine can run the service, and how to fix problems')
    .option('--env <file>', 'file of settings (default: /etc/imagemill/imagemill.env, if it exists)')
    .option('--json', 'print a JSON object')
    .option('--attack', 'attack this installation, and show which protection stops what')
    .option('--only <name>', 'with --attack: only the attacks whose names contain this')
    .addHelpText('after', DOCTOR_HELP)
    .action(async (flags: DoctorFlags) => {
      const { doctor } = await import('./doctor.ts');
      onExit(await doctor(flags, context));
    });
}

function addKey(program: Command): void {
  program
    .command('key')
    .description('make an API key: print its line for API_KEYS_FILE, and the key to standard error')
    .argument('<name>', 'name of the client: letters, digits, and . _ @ -')
    .option('--limit <number>', 'requests per minute, 0 for no limit (default: RATE_LIMIT_PER_MINUTE)')
    .addHelpText('after', KEY_HELP)
    .action(async (name: string, { limit }: { limit?: string }) => {
      const { createApiKey } = await import('../files/api-keys.ts');
      const made = createApiKey(name, limit);
      if (!made) throw new CliError(KEY_EXPECTED);
      console.log(made.line);
      console.error(made.key);
    });
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(
      new Argument('<shell>', 'shell that reads the script').choices(Object.keys(COMPLETION_SCRIPTS)),
    )
    .addHelpText('after', COMPLETION_HELP)
    .action((shell: keyof typeof COMPLETION_SCRIPTS) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell](program));
    });
}
