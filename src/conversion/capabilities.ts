/** @module Determines which conversions work with the tools that were found, and what is missing for the others. */
import { INPUT_TYPES, type InputType, OUTPUT_TYPES, OUTPUTS, type OutputType } from '../formats.ts';
import type { Magick, Toolchain } from '../process/toolchain.ts';
import { TOOL_NAMES, TOOLS } from '../tools.ts';
import { type Extras, enabledTypes, NO_EXTRAS } from './extras.ts';
import { magickDecoder } from './plan/decoders.ts';
import { toolsFor } from './plan/job.ts';

/** A standard conversion that does not work. */
interface MissingCapability {
  /** What ImageMagick cannot do with a format; undefined if a tool is missing. */
  readonly verb?: 'read' | 'write';
  /** What is missing, with the package to install. */
  readonly message: string;
}

/** A format that a setting enables by name and that does not work. */
interface UnavailableFormat {
  readonly setting: 'EXTRA_INPUTS' | 'EXTRA_OUTPUTS';
  /** What is missing, with the package to install. */
  readonly message: string;
}

/** Conversions that work on this machine. */
export interface Capabilities {
  /** Types that can be converted to at least one output. */
  readonly inputs: readonly InputType[];
  /** Formats that at least one input can be converted to. */
  readonly outputs: readonly OutputType[];
  /** Returns whether files of this type can be converted to this format. */
  supports(input: InputType, output: OutputType): boolean;
  readonly problems: readonly MissingCapability[];
  readonly unavailable: readonly UnavailableFormat[];
}

/** Debian packages that ImageMagick needs to read these formats. */
const CODER_PACKAGES: Readonly<Record<string, string>> = {
  AVIF: 'libheif-plugin-dav1d',
  HEIC: 'libheif-plugin-libde265',
};

/** Determines the conversions that work, among the standard formats and the extra ones. */
export function detectCapabilities(toolchain: Toolchain, extras: Extras = NO_EXTRAS): Capabilities {
  const supports = (input: InputType, output: OutputType): boolean =>
    findMissing(toolchain, input, output) === undefined;
  const { inputs, outputs } = enabledTypes(extras);
  const missing = [
    ...(extras.inputs === 'all' ? [] : extras.inputs).map((type) => ({
      setting: 'EXTRA_INPUTS' as const,
      type,
      cause: findMissing(toolchain, type, 'png'),
    })),
    ...(extras.outputs === 'all' ? [] : extras.outputs).map((type) => ({
      setting: 'EXTRA_OUTPUTS' as const,
      type,
      cause: findMissing(toolchain, 'png', type),
    })),
  ];
  return {
    supports,
    inputs: inputs.filter((input) => outputs.some((output) => supports(input, output))),
    outputs: outputs.filter((output) => inputs.some((input) => supports(input, output))),
    problems: [...missingTools(toolchain), ...missingCoders(toolchain)],
    unavailable: missing
      .filter(({ cause }) => cause !== undefined)
      .map(({ setting, type, cause }) => ({
        setting,
        message: `${setting}: ${type} does not work here: ${cause}`,
      })),
  };
}

/** Returns a message about the tool or coder that a conversion lacks; undefined if it works. */
function findMissing(toolchain: Toolchain, input: InputType, output: OutputType): string | undefined {
  const { magick } = toolchain;
  const needed = toolsFor(input, output, magick?.major ?? 7);
  const tool = needed.find((name) => toolchain[name] === undefined);
  if (tool) return `${TOOLS[tool].label} not found. ${installAdvice(TOOLS[tool].debianPackage)}`;
  if (!magick || !needed.includes('magick')) return undefined;
  const read = magickDecoder(input, magick.major) ?? 'PNG'; // which the other programs write for ImageMagick
  if (!magick.reads.has(read)) return cannot(magick, 'read', read);
  const written = OUTPUTS[output].coder;
  return magick.writes.has(written) ? undefined : cannot(magick, 'write', written);
}

function cannot({ path }: Magick, verb: 'read' | 'write', coder: string): string {
  return `ImageMagick at ${path} cannot ${verb} ${coder}. ${installAdvice(CODER_PACKAGES[coder] ?? TOOLS.magick.debianPackage)}`;
}

const installAdvice = (debianPackage: string): string => `On Debian: apt install ${debianPackage}`;

function missingTools(toolchain: Toolchain): MissingCapability[] {
  const needed = TOOL_NAMES.map((name) => ({ name, ...TOOLS[name] })).filter(
    ({ neededFor }) =>
      neededFor === 'standard' || (neededFor === 'magick-6' && toolchain.magick?.major === 6),
  );
  return needed
    .filter(({ name }) => toolchain[name] === undefined)
    .map(({ label, withoutIt, debianPackage }) => ({
      message: `${label} not found: ${withoutIt}. ${installAdvice(debianPackage)}`,
    }));
}

function missingCoders({ magick }: Toolchain): MissingCapability[] {
  if (!magick) return [];
  const missing = {
    read: INPUT_TYPES.flatMap((type) => magickDecoder(type, magick.major) ?? []).filter(
      (coder) => !magick.reads.has(coder),
    ),
    write: OUTPUT_TYPES.map((type) => OUTPUTS[type].coder).filter((coder) => !magick.writes.has(coder)),
  };
  return (['read', 'write'] as const).flatMap((verb) =>
    missing[verb].map((coder) => ({ verb, message: cannot(magick, verb, coder) })),
  );
}
