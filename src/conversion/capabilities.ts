import { INPUT_TYPES, INPUTS, type InputType, OUTPUT_TYPES, OUTPUTS, type OutputType } from '../formats.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { toolsFor } from './plan/index.ts';
import type { ToolName } from './plan/types.ts';

/** Which conversions work with the tools that were found, and what is missing for the rest. */

export interface Capabilities {
  readonly inputs: readonly InputType[];
  readonly outputs: readonly OutputType[];
  supports(input: InputType, output: OutputType): boolean;
  /** What does not work and what would help, a line each. */
  readonly problems: readonly string[];
}

/** What each tool is called, and the Debian package that brings it. */
const TOOLS: Readonly<Record<ToolName, { readonly label: string; readonly debianPackage: string }>> = {
  magick: { label: 'ImageMagick 6 or 7', debianPackage: 'imagemagick' },
  rsvg: { label: 'rsvg-convert', debianPackage: 'librsvg2-bin' },
  heif: { label: 'heif-convert', debianPackage: 'libheif-examples' },
  img2webp: { label: 'img2webp', debianPackage: 'webp' },
};

/** The Debian package whose absence usually takes the coder away. */
const CODER_PACKAGES: Readonly<Record<string, string>> = { AVIF: 'libheif-plugin-dav1d' };

export function detectCapabilities(toolchain: Toolchain): Capabilities {
  const { magick } = toolchain;
  const supports = (input: InputType, output: OutputType): boolean =>
    toolsFor(input, output, magick?.major ?? 7).every(
      (tool) => toolchain[tool] !== undefined && (tool !== 'magick' || codersFor(input, output)),
    );
  const codersFor = (input: InputType, output: OutputType): boolean =>
    magick !== undefined && reads(toolchain, input) && magick.writes.has(OUTPUTS[output].coder);

  return {
    supports: supports,
    inputs: INPUT_TYPES.filter((input) => OUTPUT_TYPES.some((output) => supports(input, output))),
    outputs: OUTPUT_TYPES.filter((output) => INPUT_TYPES.some((input) => supports(input, output))),
    problems: [...missingTools(toolchain), ...missingCoders(toolchain)],
  };
}

function reads({ magick }: Toolchain, input: InputType): boolean {
  const { coder } = INPUTS[input];
  return magick !== undefined && (coder === undefined || magick.reads.has(coder));
}

function missingTools(toolchain: Toolchain): string[] {
  const needed: ToolName[] = [
    'magick',
    'rsvg',
    ...(toolchain.magick?.major === 6 ? (['heif', 'img2webp'] as const) : []),
  ];
  const missingFeature: Readonly<Record<ToolName, string>> = {
    magick: 'only SVG to PNG and PDF works',
    rsvg: 'SVG is not read',
    heif: 'AVIF is not read, since ImageMagick 6 reads it with wrong colours',
    img2webp: 'animations are not converted to WebP, since ImageMagick 6 writes them wrongly',
  };
  return needed
    .filter((tool) => toolchain[tool] === undefined)
    .map(
      (tool) =>
        `${TOOLS[tool].label} not found: ${missingFeature[tool]}. On Debian: apt install ${TOOLS[tool].debianPackage}`,
    );
}

function missingCoders({ magick }: Toolchain): string[] {
  if (!magick) return [];
  const inputs = INPUT_TYPES.map((type) => INPUTS[type].coder).filter((coder) => coder !== undefined);
  const outputs = OUTPUT_TYPES.map((type) => OUTPUTS[type].coder);
  const line = (verb: string, coder: string) =>
    `ImageMagick at ${magick.path} cannot ${verb} ${coder}. On Debian: apt install ${CODER_PACKAGES[coder] ?? 'imagemagick'}`;
  return [
    ...inputs.filter((coder) => !magick.reads.has(coder)).map((coder) => line('read', coder)),
    ...outputs.filter((coder) => !magick.writes.has(coder)).map((coder) => line('write', coder)),
  ];
}
