/** @module The `explain` command: prints what a conversion would do, and why. Runs no tool except to find the versions. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { enabledTypes, selectExtras } from '../conversion/capabilities.ts';
import { type ConversionEngine, createConversionEngine } from '../conversion/engine.ts';
import { type Explanation, toJson } from '../conversion/explain.ts';
import { DEFAULT_FORMAT } from '../conversion/options.ts';
import { type ConvertOptions, INPUT_FILE } from '../conversion/plan/types.ts';
import { storeInput } from '../conversion/store.ts';
import { StartupError } from '../errors.ts';
import { INPUTS, OUTPUTS } from '../formats.ts';
import { sanitizeForDisplay, shellWords } from '../text.ts';
import { abortOnSignals, type CliContext, CliError, loadSettings } from './context.ts';
import { toFileError } from './convert/converter.ts';
import { createInputs } from './convert/inputs.ts';
import { assertCompatible, type Flags, parseOptions, withLocalLimits } from './convert/options.ts';
import { labelOf } from './convert/report.ts';

/** Options of the command, in addition to those of a conversion. */
export interface ExplainFlags extends Omit<Flags, 'output'> {
  readonly commands?: boolean;
}

/**
 * Runs `imagemill explain`.
 *
 * @returns the exit status: 0 if all files could be converted, 1 if some could not
 * @throws {CliError} with status 2, if the arguments are invalid or this machine cannot convert
 */
export async function explain(
  args: readonly string[],
  flags: ExplainFlags,
  { env }: CliContext,
): Promise<number> {
  const given = { ...flags, output: '' };
  const config = withLocalLimits(loadSettings(env), given, env);
  const { inputs: types, outputs } = enabledTypes(selectExtras(config));
  const { format = DEFAULT_FORMAT, options } = parseOptions(given, outputs);
  const convertOptions = { ...options, format };
  assertCompatible(convertOptions, outputs);
  const stop = abortOnSignals();
  const inputs = await createInputs(args, undefined, stop.signal, types);
  const engine = await createConversionEngine(config, pino({ level: 'silent' })).catch((error) => {
    throw error instanceof StartupError ? new CliError(error.message, 2) : error;
  });
  let failed = false;
  try {
    for await (const input of inputs.find()) {
      if ('notice' in input || stop.signal.aborted) continue;
      try {
        if ('error' in input) throw input.error;
        const explained = await explainFile(engine, input.path, convertOptions, {
          maxBytes: config.MAX_FILE_BYTES,
          signal: stop.signal,
        });
        print(input.path, explained, engine, convertOptions, flags);
      } catch (error) {
        failed = true;
        const { code, message } = toFileError(error, input.path);
        if (flags.json) console.log(JSON.stringify({ input: input.path, error: { code, message } }));
        else console.error(`imagemill: ${sanitizeForDisplay(message, 500)}`);
      }
    }
  } finally {
    await engine.close();
  }
  return stop.status() || Number(failed);
}

async function explainFile(
  engine: ConversionEngine,
  path: string,
  options: ConvertOptions,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<Explanation> {
  return engine.workspaces.use({}, async (workspace) => {
    const folder = await workspace.folder('image');
    const { disk } = workspace;
    const label = labelOf(path);
    const types = engine.capabilities.inputs;
    const rules = { label, types, maxBytes: () => maxBytes, signal, disk };
    const { type } = await storeInput(createReadStream(path), join(folder, INPUT_FILE), rules);
    return engine.explain({ folder, disk, type, label }, options);
  });
}

function print(
  path: string,
  explained: Explanation,
  { toolchain }: ConversionEngine,
  { format }: ConvertOptions,
  { json = false, commands = false }: ExplainFlags,
): void {
  const { image, sentences, key, limits, steps } = explained;
  const shell = steps.map(
    ({ tool, args, stdin }) =>
      shellWords([toolchain[tool]?.path ?? tool, ...args]) + (stdin === undefined ? '' : ` < ${stdin}`),
  );
  if (json) {
    console.log(JSON.stringify({ input: path, ...toJson(explained), ...(commands && { commands: shell }) }));
    return;
  }
  const size = image.width && image.height ? `, ${image.width} × ${image.height}` : '';
  console.log(
    `${sanitizeForDisplay(path, 500)} (${INPUTS[image.type].label}${size}) → ${OUTPUTS[format].label}`,
  );
  for (const sentence of sentences) console.log(`  ${sentence}`);
  const { MAX_PIXELS: pixels, MAX_FRAMES: frames, CONVERT_TIMEOUT_MS: ms } = limits;
  console.log(`  limits: ${pixels / 1e6} megapixels, ${frames} frames, ${ms / 1000} s`);
  console.log(`  key: ${key}`);
  if (!commands) return;
  console.log(`  ${shellWords(['cp', '--', path, INPUT_FILE])}`);
  for (const line of shell) console.log(`  ${line}`);
}
