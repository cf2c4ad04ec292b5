/**
 * @module Determines which conversions work with the tools that were found, and what is missing for
 * the others. Selects the formats of `EXTRA_INPUTS` and `EXTRA_OUTPUTS`, and the tools and rights
 * that they need.
 */
import type { Grant } from '../../process/policy.ts';
import { isAtLeast, type Magick, type Toolchain, type ToolSearch } from '../../process/toolchain.ts';
import type { Config } from '../../tables/config.ts';
import {
  COMBINED_TYPES,
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  INPUT_TYPES,
  INPUTS,
  type InputType,
  OUTPUT_TYPES,
  OUTPUTS,
  type OutputType,
} from '../../tables/formats.ts';
import { TOOL_NAMES, TOOLS, type ToolName } from '../../tables/tools.ts';
import { magickDecoder, toolsFor } from '../plan/job.ts';
import type { ToolContext } from '../plan/types.ts';

interface Problem {
  /** What ImageMagick cannot do with a format; undefined if a tool is missing. */
  readonly verb?: 'read' | 'write';
  /** What is missing, with the package to install. */
  readonly message: string;
}

/** Conversions that work on this machine. */
export type Capabilities = ReturnType<typeof detectCapabilities>;

/** Oldest tested version with `-alpha off-if-opaque`. Early ImageMagick 7 does not have it. */
const DROPS_OPAQUE_ALPHA_SINCE = '7.1.1-43';

/** libjxl 0.7 states 8 bits for each alpha channel (https://github.com/libjxl/libjxl/pull/1786). */
const STATES_DEEP_ALPHA_SINCE = '0.8';

/** Oldest version of librsvg with which the features that `features.ts` calls new were tried. */
const DRAWS_NEW_FEATURES_SINCE = '2.60';

/** Returns the properties of the tools that plans depend on. */
export function toolContext(toolchain: Toolchain): ToolContext {
  const has = (name: ToolName, since: string): boolean => isAtLeast(toolchain[name]?.version ?? '0', since);
  return {
    magick: toolchain.magick?.major ?? 7,
    dropsOpaqueAlpha: has('magick', DROPS_OPAQUE_ALPHA_SINCE),
    scalesWebp: toolchain.dwebp !== undefined,
    encodesWebp: toolchain.cwebp !== undefined,
    assemblesWebp: toolchain.img2webp !== undefined,
    selectsColours: toolchain.pngquant !== undefined,
    statesDeepAlpha: has('cjxl', STATES_DEEP_ALPHA_SINCE),
    drawsNewFeatures: has('rsvg', DRAWS_NEW_FEATURES_SINCE),
  };
}

/** Determines which standard and extra conversions work. `refused`: why tools are not used. */
export function detectCapabilities(
  toolchain: Toolchain,
  settings: ExtraSettings,
  refused: ReadonlyMap<ToolName, string> = new Map(),
) {
  const { magick } = toolchain;
  const version = magick?.major ?? 7;
  /** Returns why a conversion does not work; undefined if it does. */
  const findProblem = (input: InputType, output: OutputType): string | undefined => {
    const needed = toolsFor(input, output, version);
    const tool = needed.find((name) => toolchain[name] === undefined);
    if (tool)
      return (
        refused.get(tool) ?? `${TOOLS[tool].label} not found. ${installAdvice(TOOLS[tool].debianPackage)}`
      );
    if (!magick || !needed.includes('magick')) return undefined;
    const coder = magickDecoder(input, version) ?? 'PNG'; // which the other programs write for ImageMagick
    const problem =
      missingCoder(magick, 'read', coder) ?? missingCoder(magick, 'write', OUTPUTS[output].coder);
    return problem?.message;
  };
  /** Returns whether files of this type can be converted to this format. */
  const supports = (input: InputType, output: OutputType) => findProblem(input, output) === undefined;
  const enabled = enabledTypes(settings);
  const outputs = enabled.outputs.filter((output) => enabled.inputs.some((input) => supports(input, output)));
  const [read, written] = [listNamed(settings.EXTRA_INPUTS), listNamed(settings.EXTRA_OUTPUTS)];
  const named = [
    ...read.map((type) => ['EXTRA_INPUTS', type, findProblem(type, 'png')] as const),
    ...written.map((type) => ['EXTRA_OUTPUTS', type, findProblem('png', type)] as const),
  ];
  return {
    supports,
    /** Types that can be converted to at least one output. */
    inputs: enabled.inputs.filter((input) => outputs.some((output) => supports(input, output))),
    /** Formats that at least one input can be converted to. */
    outputs,
    /** Formats of which one file can have the results of several images. */
    combined: outputs.filter((type) => COMBINED_TYPES.includes(type) && !missingCombiner(type, toolchain)),
    /** Standard conversions that do not work. */
    problems: [...missingTools(toolchain, refused), ...(magick ? missingCoders(magick) : [])],
    /** Formats that a setting enables by name and that do not work. */
    unavailable: named.flatMap(([setting, type, cause]) =>
      cause === undefined
        ? []
        : { setting, type, cause, message: `${setting}: ${type} does not work here: ${cause}` },
    ),
  };
}

/** The tools that combine results. Those of other formats are combined in this process. */
const COMBINING_TOOLS: Readonly<Partial<Record<OutputType, ToolName>>> = { pdf: 'qpdf' };

/** Returns the tool that is missing to combine results of a format. */
export function missingCombiner(type: OutputType, toolchain: Toolchain): ToolName | undefined {
  const tool = COMBINING_TOOLS[type];
  return tool && !toolchain[tool] ? tool : undefined;
}

/** Returns the types that a setting enables by name. */
const listNamed = <T>(types: 'all' | readonly T[]): readonly T[] => (types === 'all' ? [] : types);

const installAdvice = (debianPackage: string): string => `On Debian: apt install ${debianPackage}`;

/** Returns the tools that standard conversions need and that are missing, except refused ones. */
function missingTools(toolchain: Toolchain, refused: ReadonlyMap<ToolName, string>): Problem[] {
  const needs = toolchain.magick?.major === 6 ? ['standard', 'magick-6'] : ['standard'];
  return TOOL_NAMES.filter((name) => !toolchain[name] && !refused.has(name)).flatMap((name) => {
    const { neededFor, label, lacks, debianPackage } = TOOLS[name];
    const message = `${label} not found: ${lacks}. ${installAdvice(debianPackage)}`;
    return needs.includes(neededFor) ? { message } : [];
  });
}

/** Returns the coders that standard conversions need and that ImageMagick does not have. */
function missingCoders(magick: Magick): Problem[] {
  const written = new Set(OUTPUT_TYPES.map((type) => OUTPUTS[type].coder));
  const needed = [
    ...codersRead(INPUT_TYPES, magick.major).map((coder) => ['read', coder] as const),
    ...Array.from(written, (coder) => ['write', coder] as const),
  ];
  return needed.flatMap(([verb, coder]) => missingCoder(magick, verb, coder) ?? []);
}

function missingCoder(magick: Magick, verb: 'read' | 'write', coder: string): Problem | undefined {
  if (magick[`${verb}s`].has(coder)) return undefined;
  const format = Object.values(INPUTS).find((input) => input.coder === coder);
  const advice = installAdvice(format?.coderPackage ?? TOOLS.magick.debianPackage);
  return { verb, message: `ImageMagick at ${magick.path} cannot ${verb} ${coder}. ${advice}` };
}

/** The formats that the operator enables. `all` means all that work on this machine. */
export type ExtraSettings = Pick<Config, 'EXTRA_INPUTS' | 'EXTRA_OUTPUTS'>;

/** Returns the extra types that the settings enable, whether or not they work here. */
function extraTypes({ EXTRA_INPUTS, EXTRA_OUTPUTS }: ExtraSettings) {
  return {
    inputs: EXTRA_INPUTS === 'all' ? EXTRA_INPUT_TYPES : EXTRA_INPUTS,
    outputs: EXTRA_OUTPUTS === 'all' ? EXTRA_OUTPUT_TYPES : EXTRA_OUTPUTS,
  };
}

/** Returns all enabled types, whether or not they work on this machine. */
export function enabledTypes(settings: ExtraSettings) {
  const { inputs, outputs } = extraTypes(settings);
  return { inputs: [...INPUT_TYPES, ...inputs], outputs: [...OUTPUT_TYPES, ...outputs] };
}

/** Returns where to look for the tools, including those that the extra formats need. */
export function toolSearch(config: Config): ToolSearch {
  const { PATH: path, MAGICK_BIN: magick, RSVG_BIN: rsvg } = config;
  const { inputs, outputs } = extraTypes(config);
  const tools = [
    // The optional tools are the same for both versions of ImageMagick.
    ...inputs.flatMap((type) => toolsFor(type, 'png', 7)),
    ...outputs.flatMap((type) => toolsFor('png', type, 7)),
    ...outputs.flatMap((type) => OUTPUTS[type].restorer ?? []),
  ];
  const optional = TOOL_NAMES.filter((tool) => TOOLS[tool].neededFor === 'extras' && tools.includes(tool));
  return { path, named: { magick, rsvg }, optional };
}

const codersRead = (types: readonly InputType[], magick: 6 | 7): string[] =>
  types.flatMap((type) => magickDecoder(type, magick) ?? []);
const codersWritten = (types: readonly OutputType[]): string[] =>
  types.flatMap((type) => [OUTPUTS[type].coder, OUTPUTS[type].innerCoder ?? []].flat());

/**
 * Returns the coders that the fork server of ImageMagick loads before its first job: those of the
 * outputs. Each library makes each fork slower, so jobs that read TIFF or AVIF load the many
 * libraries of these coders themselves (`bench/README.md`).
 */
export const preparedCoders = (outputs: readonly OutputType[]): string[] => [
  ...new Set(codersWritten(outputs)),
];

/** Returns the rights beside those of the policy in `assets/`, for all types that work here. */
export function grantsFor(
  inputs: readonly InputType[],
  outputs: readonly OutputType[],
  magick: 6 | 7,
): Grant[] {
  const extraInputs = inputs.filter((type) => EXTRA_INPUT_TYPES.some((extra) => extra === type));
  const extraOutputs = outputs.filter((type) => EXTRA_OUTPUT_TYPES.some((extra) => extra === type));
  const extraCoders = [...codersRead(extraInputs, magick), ...codersWritten(extraOutputs)];
  const [read, written] = [codersRead(inputs, magick), codersWritten(outputs)];
  return [...new Set(extraCoders)].map((coder) => {
    if (!written.includes(coder)) return { coder, rights: 'read' };
    return { coder, rights: read.includes(coder) ? 'read|write' : 'write' };
  });
}
