/** @module The formats of `EXTRA_INPUTS` and `EXTRA_OUTPUTS`, and the tools and rights that they need. */
import type { Config } from '../config.ts';
import {
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  type ExtraInputType,
  type ExtraOutputType,
  INPUT_TYPES,
  type InputType,
  OUTPUT_TYPES,
  OUTPUTS,
  type OutputType,
} from '../formats.ts';
import type { Grant } from '../process/policy.ts';
import type { ToolSearch } from '../process/toolchain.ts';
import { TOOL_NAMES, TOOLS, type ToolName } from '../tools.ts';
import { externalDecoder, magickDecoder } from './plan/decoders.ts';
import { EXTERNAL_ENCODERS } from './plan/encode.ts';

/** Formats that the operator enables. */
export interface Extras {
  /** `EXTRA_INPUTS`. `all` means all that work on this machine. */
  readonly inputs: 'all' | readonly ExtraInputType[];
  /** `EXTRA_OUTPUTS`, likewise. */
  readonly outputs: 'all' | readonly ExtraOutputType[];
}

/** No formats in addition to the standard ones. */
export const NO_EXTRAS: Extras = { inputs: [], outputs: [] };

/** Returns the extra formats that the settings enable. */
export function selectExtras(config: Pick<Config, 'EXTRA_INPUTS' | 'EXTRA_OUTPUTS'>): Extras {
  return { inputs: config.EXTRA_INPUTS, outputs: config.EXTRA_OUTPUTS };
}

/** Replaces `all` by the list of extra types, including types that do not work on this machine. */
function requestedTypes({ inputs, outputs }: Extras): {
  readonly inputs: readonly ExtraInputType[];
  readonly outputs: readonly ExtraOutputType[];
} {
  return {
    inputs: inputs === 'all' ? EXTRA_INPUT_TYPES : inputs,
    outputs: outputs === 'all' ? EXTRA_OUTPUT_TYPES : outputs,
  };
}

/** Returns all enabled types, whether or not they work on this machine. */
export function enabledTypes(extras: Extras): {
  readonly inputs: readonly InputType[];
  readonly outputs: readonly OutputType[];
} {
  const extra = requestedTypes(extras);
  return { inputs: [...INPUT_TYPES, ...extra.inputs], outputs: [...OUTPUT_TYPES, ...extra.outputs] };
}

/** Returns where to look for the tools, including those that the extra formats need. */
export function toolSearch(config: Config): ToolSearch {
  const { PATH: path, MAGICK_BIN: magickBin, RSVG_BIN: rsvgBin } = config;
  return { path, magickBin, rsvgBin, optional: optionalTools(selectExtras(config)) };
}

/** Returns the tools that the formats need in addition to the standard ones. */
export function optionalTools(extras: Extras): ToolName[] {
  const { inputs, outputs } = requestedTypes(extras);
  const tools = [
    // The optional tools are the same for both versions of ImageMagick.
    ...inputs.map((type) => externalDecoder(type, 7)),
    ...outputs.map((type) => EXTERNAL_ENCODERS[type]?.tool),
  ];
  return TOOL_NAMES.filter((tool) => TOOLS[tool].neededFor === 'extras' && tools.includes(tool));
}

const codersRead = (types: readonly InputType[], magick: 6 | 7): string[] =>
  types.flatMap((type) => magickDecoder(type, magick) ?? []);
const codersWritten = (types: readonly OutputType[]): string[] =>
  types.flatMap((type) => [OUTPUTS[type].coder, OUTPUTS[type].innerCoder ?? []].flat());

/**
 * Returns the coders that the fork server of ImageMagick loads before its first job: those of the outputs. Each library makes
 * each fork slower, so jobs that read TIFF or AVIF load the many libraries of these coders themselves (`bench/README.md`).
 */
export const preparedCoders = (outputs: readonly OutputType[]): string[] => [
  ...new Set(codersWritten(outputs)),
];

/**
 * Returns the rights that ImageMagick needs in addition to those of the policy in `assets/`.
 *
 * @param inputs all enabled types that work on this machine
 * @param outputs all enabled types that work on this machine
 */
export function grantsFor(
  inputs: readonly InputType[],
  outputs: readonly OutputType[],
  magick: 6 | 7,
): Grant[] {
  const extraCoders = [
    ...codersRead(
      inputs.filter((type) => EXTRA_INPUT_TYPES.some((extra) => extra === type)),
      magick,
    ),
    ...codersWritten(outputs.filter((type) => EXTRA_OUTPUT_TYPES.some((extra) => extra === type))),
  ];
  const [read, written] = [codersRead(inputs, magick), codersWritten(outputs)];
  return [...new Set(extraCoders)].map((coder) => {
    if (!written.includes(coder)) return { coder, rights: 'read' };
    return { coder, rights: read.includes(coder) ? 'read|write' : 'write' };
  });
}
