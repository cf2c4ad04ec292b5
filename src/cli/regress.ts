/** @module The subcommands and options of `regress`. The actions are loaded on demand. */
import type { Command } from 'commander';
import { type CliContext, findDecoders } from './context.ts';
import type { ReportFiles } from './regress-actions.ts';

const EXAMPLES = `
Examples:
  $ imagemill regress record photos --to before
  $ imagemill regress check photos --against before --report report.html
  $ imagemill regress check photos --against before --url http://candidate:3000 --junit junit.xml
  $ imagemill regress compare before after --report report.html

Exit status: 0 if nothing changed; 1 if something changed; 2 if the comparison was
not possible; 128 plus its number after a signal, such as 130 after Ctrl-C.`;

/** Adds the command to the program. `onExit` receives the exit status. */
export function addRegress(program: Command, { env }: CliContext, onExit: (status: number) => void): void {
  const regress = program
    .command('regress')
    .description('test whether an upgrade of the tools changes any image')
    .addHelpText('after', EXAMPLES)
    .hook('preAction', () => void findDecoders('regress'));
  const run = async (action: (actions: typeof import('./regress-actions.ts')) => Promise<number>) =>
    onExit(await action(await import('./regress-actions.ts')));

  withConvertOptions(regress.command('record <images>'))
    .description('convert every image of a folder in many ways, and save the results as a baseline')
    .requiredOption('--to <baseline>', 'folder for the baseline; with --fingerprints-only, a JSON file')
    .option('--fingerprints-only', 'save fingerprints without images: small enough for version control')
    .action((images: string, options) => run((actions) => actions.recordBaseline(images, options, env)));

  withReportOptions(withConvertOptions(regress.command('check <images>')))
    .description('convert the images again, and compare the results with a baseline')
    .requiredOption('--against <baseline>', 'folder or JSON file of the baseline')
    .action((images: string, options) => run((actions) => actions.checkImages(images, options, env)));

  withMatrix(withReportOptions(regress.command('compare <before> <after>')))
    .description('compare two baselines, for example from two machines')
    .action((before: string, after: string, options: ReportFiles) =>
      run((actions) => actions.compareBaselines(before, after, options, env)),
    );
}

function withMatrix(command: Command): Command {
  return command
    .option(
      '--matrix <file>',
      'YAML or JSON file with conversions and thresholds (see docs/regression-testing.md)',
    )
    .option('--presets <file>', 'YAML or JSON file with the presets that the matrix names');
}

function withConvertOptions(command: Command): Command {
  return withMatrix(command)
    .option(
      '--url <server>',
      'convert with a server, with the API key in IMAGEMILL_API_KEY, not with the tools of this machine',
    )
    .option('--repeat <times>', 'number of conversions of each image, for the median time', '1');
}

function withReportOptions(command: Command): Command {
  return command
    .option('--report <file>', 'write an HTML report to a file')
    .option('--junit <file>', 'write a JUnit XML report to a file')
    .option('--json <file>', 'write a JSON report to a file');
}
