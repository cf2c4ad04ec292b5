/** @module The `explain` command prints what a conversion would do, and why, without converting. */
import { resolve } from 'node:path';
import { escapeControls, toSafeJson } from '../base/text.ts';
import type { Variant } from '../conversion/context.ts';
import type { ConversionEngine } from '../conversion/engine.ts';
import { type Explanation, formatCommands, formatCopy, toJson } from '../conversion/explain.ts';
import { enabledTypes } from '../conversion/limits/capabilities.ts';
import { INPUTS, OUTPUTS } from '../tables/formats.ts';
import { type CliContext, loadLocalSettings } from './context.ts';
import { labelOf } from './convert/converter.ts';
import { type Flags, parseOptions, parseResults, toDescribedParts } from './convert/flags.ts';
import { forEachFile } from './convert/local-converter.ts';

export interface ExplainFlags extends Flags {
  readonly commands?: boolean;
}

/**
 * Runs `imagemill explain`.
 *
 * @returns the exit status: 0 if all files could be converted, 1 if some could not, 128 or more
 *   after a signal
 * @throws {CliError} if the arguments are invalid or this machine cannot convert
 */
export async function explain(
  args: readonly string[],
  flags: ExplainFlags,
  { env }: CliContext,
): Promise<number> {
  const config = loadLocalSettings(env, flags);
  const { inputs: types, outputs } = enabledTypes(config);
  const { format, options } = parseOptions(flags, outputs);
  const { results: all, watermark } = await parseResults(flags, options, { format, types, outputs, config });
  const results = flags.combine ? toDescribedParts(all, outputs) : all;
  return forEachFile(
    args,
    types,
    config,
    async (path, { engine, withStoredInput }) => {
      for (const result of results)
        await withStoredInput(path, async (source) =>
          print(path, await engine.explain({ ...source, watermark }, result.options), engine, result, flags),
        );
    },
    flags.json ? 'input' : undefined,
  );
}

function print(
  path: string,
  explained: Explanation,
  { toolchain }: ConversionEngine,
  { name: variant, options: { format, smallest } }: Variant,
  { json = false, commands = false }: ExplainFlags,
): void {
  const { image, sentences, key, limits, steps } = explained;
  const shell = formatCommands(steps, (tool) => toolchain[tool]?.path ?? tool);
  if (json) {
    const about = { input: path, variant: variant || undefined };
    console.log(toSafeJson({ ...about, ...toJson(explained), commands: commands ? shell : undefined }));
    return;
  }
  const size = image.width && image.height ? `, ${image.width} × ${image.height}` : '';
  const name = variant && `, ${variant}`;
  const target = smallest ? 'smallest format' : OUTPUTS[format].label;
  console.log(`${labelOf(path)} (${INPUTS[image.type].label}${size}) → ${target}${name}`);
  for (const sentence of sentences) console.log(`  ${sentence}`);
  const { MAX_PIXELS: pixels, MAX_FRAMES: frames, CONVERT_TIMEOUT_MS: ms } = limits;
  console.log(`  limits: ${pixels / 1e6} megapixels, ${frames} frames, ${ms / 1000} s`);
  console.log(`  key: ${key}`);
  if (!commands) return;
  for (const line of [formatCopy(resolve(path)), ...shell]) console.log(`  ${escapeControls(line)}`);
}
