/** @module Reads the presets of a YAML or JSON file, and checks each of them. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { systemReason } from '../../files/system.ts';
import type { Config } from '../../tables/config.ts';
import { ServiceError, StartupError, serviceError } from '../../tables/errors.ts';
import type { InputType, OutputType } from '../../tables/formats.ts';
import type { TextField } from '../context.ts';
import { createParsers, formSchemas, NO_PRESETS, type Preset, type Presets } from '../request/forms.ts';
import { namedOptions, toTextFields, VARIANTS_FIELD } from '../request/variants.ts';
import { readWatermark } from './watermark-image.ts';

const PATH_EXPECTED = 'expected the path of an image';

/** `safeExtend` would give the variants the type of an option. */
const preset = z.looseObject({
  variants: z.array(namedOptions).min(1, 'expected at least one variant').optional(),
  watermark: z.string(PATH_EXPECTED).min(1, PATH_EXPECTED).optional(),
});
const schema = z.strictObject({ presets: z.array(preset) });

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * Reads the presets of a YAML or JSON file. Each must be a valid request of this instance.
 *
 * @param setting what names the file, for messages
 * @throws {StartupError} if the file cannot be read or is invalid, with a line for each problem
 */
export function readPresets(
  path: string,
  outputs: readonly OutputType[],
  config: Pick<Config, 'MAX_VARIANTS'>,
  setting = 'PRESETS_FILE',
): Presets {
  const lineCounter = new LineCounter();
  const document = parseDocument(readText(path, setting), { lineCounter });
  /** Fails if there are problems, each with its offset in the file. */
  const check = (problems: readonly (readonly [offset: number, message: string])[]): void => {
    const lines = problems.map(
      ([offset, message]) => `${setting} ${path}:${lineCounter.linePos(offset).line}: ${message}`,
    );
    if (lines.length > 0) throw new StartupError(lines.join('\n'), { setting });
  };
  check(document.errors.map(({ pos: [offset], message }) => [offset, message.split('\n')[0] as string]));
  const forms = formSchemas(outputs);
  const parse = createParsers(outputs, config, NO_PRESETS, forms).convert;
  const known = Object.keys(forms.convert.shape);
  const { presets, problems } = checkPresets(document.toJS(), dirname(resolve(path)), (fields) => {
    const unknown = fields.find(([name]) => !known.includes(name));
    if (unknown) throw serviceError('FIELD_INVALID', 'option', unknown[0], `one of ${known.join(', ')}`);
    parse(fields);
  });
  check(problems.map(({ path: at, message }) => [offsetOf(document, at), message]));
  return presets;
}

/**
 * Checks the images of the watermarks that presets name. They must not change while in use.
 *
 * @param source setting and path of the file of the presets, for messages
 * @throws {StartupError} if a file cannot be read, or is no image for a watermark
 */
export async function openWatermarks(
  presets: Presets,
  types: readonly InputType[],
  [setting, path]: readonly [setting: string, path: string],
): Promise<Presets> {
  const opened = new Map<string, Preset>();
  for (const [name, preset] of presets) {
    const { watermarkPath: image } = preset;
    opened.set(name, preset);
    if (image === undefined) continue;
    const watermark = await readWatermark(image, types).catch((cause) => {
      const isChecked = cause instanceof ServiceError;
      const reason = isChecked ? cause.message : `it cannot be read: ${systemReason(cause)}`;
      const message = `${setting} ${path}: preset "${name}": watermark ${image}: ${reason}`;
      throw new StartupError(message, { setting, cause });
    });
    opened.set(name, { ...preset, watermark });
  }
  return opened;
}

function readText(path: string, setting: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartupError(`${setting} ${path} cannot be read: ${systemReason(error)}`, {
      setting,
      cause: error,
    });
  }
}

function checkPresets(
  value: unknown,
  folder: string,
  check: (fields: readonly TextField[]) => unknown,
): { presets: Presets; problems: readonly Problem[] } {
  const presets = new Map<string, Preset>();
  const parsed = schema.safeParse(value);
  if (!parsed.success) return { presets, problems: parsed.error.issues.map(describeProblem) };
  const problems = parsed.data.presets.flatMap(({ variants, watermark, ...rest }, index): Problem[] => {
    const path = ['presets', index];
    const named = namedOptions.safeParse(rest);
    if (!named.success)
      return named.error.issues.map((issue) => describeProblem({ ...issue, path: [...path, ...issue.path] }));
    const { name } = named.data;
    const fields = toTextFields(named.data);
    if (variants) fields.push([VARIANTS_FIELD, JSON.stringify(variants)]);
    if (presets.has(name)) return [{ path, message: `another preset is named ${name}.` }];
    presets.set(name, { fields, watermarkPath: watermark && resolve(folder, watermark) });
    try {
      check(fields);
      return [];
    } catch (error) {
      return [{ path, message: `preset "${name}": ${(error as Error).message}` }];
    }
  });
  return { presets, problems };
}

const describeProblem = ({ path, message }: Problem): Problem => ({
  path,
  message: `${path.join('.') || 'the file'}: ${message}`,
});

/** Returns the offset of the value at a path, or of the nearest value around it in the file. */
function offsetOf(document: Document, path: readonly PropertyKey[]): number {
  const node = document.getIn(path as (string | number)[], true);
  if (isNode(node) && node.range) return node.range[0];
  return path.length === 0 ? 0 : offsetOf(document, path.slice(0, -1));
}
