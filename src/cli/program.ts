import { Command, CommanderError } from 'commander';
import { Refused, type Surroundings } from './surroundings.ts';

/** The commands, and what becomes of their arguments. Each loads what it needs when it is called. */

/** When the arguments make no sense, as shells and most programs have it. */
const MISUSED = 2;

/**
 * Does what the arguments say.
 *
 * @param words the arguments, without the names of Node and the program
 * @returns the exit status
 */
export async function runProgram(words: readonly string[], surroundings: Surroundings): Promise<number> {
  let status = 0;
  const program = new Command('imagemill')
    .description('Converts images with ImageMagick and librsvg: as a service, or here and now.')
    .version(surroundings.version)
    .exitOverride()
    .addHelpText('after', '\nSettings come from the environment; the README has a table of them.');

  program
    .command('serve', { isDefault: true })
    .description('serve over HTTP (what happens without a command)')
    .action(async () => {
      const { serve } = await import('./serve.ts');
      status = await serve(surroundings);
    });

  try {
    await program.parseAsync(words, { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : MISUSED; // it has said why
    if (!(error instanceof Refused)) throw error;
    for (const line of error.message.split('\n')) console.error(`imagemill: ${line}`);
    return error.status;
  }
}
