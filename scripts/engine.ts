/** @module The conversion engine of the service, for scripts. */
import { type Level, pino } from 'pino';
import { withWorkingFolder } from '../src/cli/context.ts';
import { createConversionEngine } from '../src/conversion/engine.ts';
import { loadConfig } from '../src/tables/config.ts';

/** Starts the engine. It ends with the block of an `await using` variable. */
export async function startEngine(level: Level, settings: NodeJS.ProcessEnv = process.env) {
  const engine = await createConversionEngine(
    withWorkingFolder(loadConfig(settings), settings),
    pino({ level }),
  );
  return { ...engine, [Symbol.asyncDispose]: engine.close };
}
