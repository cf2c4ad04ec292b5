import type { Command } from 'commander';
import type { CliContext } from './context.ts';
import type { ReportFiles } from './regress-actions.ts';

/** `imagemill regress`: its commands and options. What they do is loaded when it is asked for: the server needs none of it. */

const EXAMPLES = `
Examples:
  $ imagemill regress record photos --to before
  $ imagemill regress check photos --against before --report report.html
  $ imagemill regress check photos --against before --url http://candidate:3000 --junit junit.xml
  $ imagemill regress compare before after --report report.html

Exit status: 0 nothing changed, 1 something did, 2 it could not be found out,
130 or 143 ended by Ctrl-C or SIGTERM.`;

const loaded = () => import('./regress-actions.ts');

/**
 * Adds the command to the program.
 *
 * @param ends is told the exit status
 */
export function addRegress(program: Command, { env }: CliContext, ends: (status: number) => void): void {
  const regress = program
    .command('regress')
    .description('find out whether an upgrade of the tools changes any picture')
    .addHelpText('after', EXAMPLES);

  converting(regress.command('record <images>'))
    .description('convert every image of a folder in many ways, and keep the results as a baseline')
    .requiredOption('--to <baseline>', 'folder for it; with --figures-only a JSON file')
    .option('--figures-only', 'keep figures instead of pictures: small enough for version control')
    .action(async (images: string, options) =>
      ends(await (await loaded()).recordBaseline(images, options, env)),
    );

  reporting(converting(regress.command('check <images>')))
    .description('convert the images again, and compare with the baseline')
    .requiredOption('--against <baseline>', 'the folder or JSON file that was recorded')
    .action(async (images: string, options) =>
      ends(await (await loaded()).checkImages(images, options, env)),
    );

  reporting(regress.command('compare <before> <after>'))
    .description('compare two baselines, such as of two machines')
    .option('--matrix <file>', 'thresholds by this YAML or JSON file instead of those recorded')
    .action(async (before: string, after: string, options: ReportFiles) =>
      ends(await (await loaded()).compareBaselines(before, after, options)),
    );
}

function converting(command: Command): Command {
  return command
    .option('--matrix <file>', 'what to convert to, and thresholds: YAML or JSON (see the README)')
    .option('--url <server>', 'let a server convert instead of the tools here')
    .option('--repeat <times>', 'convert each so often, for the time it takes', '1');
}

function reporting(command: Command): Command {
  return command
    .option('--report <file>', 'write one HTML file, to look at')
    .option('--junit <file>', 'write JUnit XML')
    .option('--json <file>', 'write JSON');
}
