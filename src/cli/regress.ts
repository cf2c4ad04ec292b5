/**
 * @module The `regress` command: its subcommands and options. The actions are loaded on demand, as the server does
 * not need them.
 */
import type { Command } from 'commander';
import type { CliContext } from './context.ts';
import type { ReportFiles } from './regress-actions.ts';

const EXAMPLES = `
Examples:
  $ imagemill regress record photos --to before
  $ imagemill regress check photos --against before --report report.html
  $ imagemill regress check photos --against before --url http://candidate:3000 --junit junit.xml
  $ imagemill regress compare before after --report report.html

Exit status: 0 nothing changed, 1 something did, 2 it could not be found out,
130 or 143 ended by Ctrl-C or SIGTERM.`;

const loadActions = () => import('./regress-actions.ts');

/**
 * Adds the command to the program.
 *
 * @param onExit called with the exit status
 */
export function addRegress(program: Command, { env }: CliContext, onExit: (status: number) => void): void {
  const regress = program
    .command('regress')
    .description('find out whether an upgrade of the tools changes any picture')
    .addHelpText('after', EXAMPLES);

  withConvertOptions(regress.command('record <images>'))
    .description('convert every image of a folder in many ways, and keep the results as a baseline')
    .requiredOption('--to <baseline>', 'folder for it; with --figures-only a JSON file')
    .option('--figures-only', 'keep figures instead of pictures: small enough for version control')
    .action(async (images: string, options) =>
      onExit(await (await loadActions()).recordBaseline(images, options, env)),
    );

  withReportOptions(withConvertOptions(regress.command('check <images>')))
    .description('convert the images again, and compare with the baseline')
    .requiredOption('--against <baseline>', 'the folder or JSON file that was recorded')
    .action(async (images: string, options) =>
      onExit(await (await loadActions()).checkImages(images, options, env)),
    );

  withReportOptions(regress.command('compare <before> <after>'))
    .description('compare two baselines, such as of two machines')
    .option('--matrix <file>', 'thresholds by this YAML or JSON file instead of those recorded')
    .action(async (before: string, after: string, options: ReportFiles) =>
      onExit(await (await loadActions()).compareBaselines(before, after, options)),
    );
}

function withConvertOptions(command: Command): Command {
  return command
    .option('--matrix <file>', 'what to convert to, and thresholds: YAML or JSON (see the README)')
    .option('--url <server>', 'let a server convert instead of the tools here')
    .option('--repeat <times>', 'convert each so often, for the time it takes', '1');
}

function withReportOptions(command: Command): Command {
  return command
    .option('--report <file>', 'write one HTML file, to look at')
    .option('--junit <file>', 'write JUnit XML')
    .option('--json <file>', 'write JSON');
}
