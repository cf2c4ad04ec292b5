/** @module Converts one image when the queue starts it: decode, plan, run the commands, verify the result. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { serviceError, serviceErrorFrom } from '../errors.ts';
import { INPUTS, OUTPUTS } from '../formats.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { decodeInProcess } from './input/decode-in-process.ts';
import { readDecoded } from './input/decoded.ts';
import { checkLimits } from './limits.ts';
import { addJxlMetadata } from './output/jxl-metadata.ts';
import { collectNotes, keptMetadata } from './output/notes.ts';
import { correctPdfTitle } from './output/pdf-title.ts';
import {
  explainUnsupportedJpeg,
  invalidOutputError,
  isProfileError,
  UNREADABLE_KINDS,
} from './output/tool-errors.ts';
import { isNoFile, verifyOutput } from './output/verify.ts';
import { planDecoding } from './plan/decoders.ts';
import type { ImageInfo } from './plan/image-info.ts';
import { findMisread, plan, planAgain, planMeasuring, toolsFor } from './plan/index.ts';
import { type ConvertOptions, type Plan, TO_ENCODE, type ToolContext } from './plan/types.ts';
import { inspectRendered, type RunningConversion, type RunSteps } from './run-steps.ts';
import { encodeWithin } from './search-quality.ts';
import type { ConversionInput, ConversionResult } from './types.ts';

/** What {@link createImageConverter} needs. */
export interface ImageConverterDeps {
  readonly toolchain: Toolchain;
  readonly config: Config;
  readonly runSteps: RunSteps;
}

/** Plans and runs conversions of images that were inspected. */
export interface ImageConverter {
  /**
   * Plans a conversion.
   *
   * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
   */
  prepare(image: ImageInfo, source: ConversionInput, options: ConvertOptions, tools: ToolContext): Plan;
  /** Converts an image. Throws what {@link RunSteps} throws. */
  convertImage(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<Omit<ConversionResult, 'queuedMs' | 'convertedMs'>>;
}

const CONTRADICTORY = new Error('the parts of the header contradict each other about the size');

/** Creates the functions that plan and run conversions. */
export function createImageConverter({ toolchain, config, runSteps }: ImageConverterDeps): ImageConverter {
  const prepare: ImageConverter['prepare'] = (image, { type, label, readsMisread }, options, tools) => {
    checkLimits(image, options, config, label);
    if (image.contradictory)
      throw serviceErrorFrom(CONTRADICTORY, 'CORRUPT_IMAGE', label, INPUTS[type].label);
    const misread = readsMisread ? undefined : findMisread(image, options, tools);
    if (misread) throw serviceError('UNSUPPORTED_ENCODING', label, misread);
    if (image.unreadable)
      throw serviceError('UNSUPPORTED_ENCODING', label, UNREADABLE_KINDS[image.unreadable]);
    const prepared = plan(image, options, tools);
    const needed = [
      ...toolsFor(image.type, options.format, tools.magick),
      ...prepared.steps.map(({ tool }) => tool),
    ];
    if (needed.some((tool) => !toolchain[tool]))
      throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
    return prepared;
  };

  /** Converts a file that ImageMagick cannot read to PNG, and inspects the PNG. */
  async function decodeFirst(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<ImageInfo> {
    const { source, signal, deadline } = conversion;
    if (image.decoder)
      return decodeInProcess(image.decoder, image, source, signal, deadline - performance.now());
    const decoding = planDecoding(image, conversion.tools);
    if (!decoding) return image;
    await runSteps([decoding.step], options, conversion);
    const keepsMetadata = !options.stripMetadata;
    return readDecoded(image, source.folder, decoding.output, config, keepsMetadata).catch((error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutputError(`${decoding.output}: ${error.code}`, source)
        : error;
    });
  }

  /** Renders an SVG to find out its size, if the plan depends on it and the header does not state it reliably. */
  async function measure(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<ImageInfo> {
    const step = planMeasuring(image, options);
    if (!step) return image;
    const ownSize = { format: 'png', width: undefined, height: undefined, fit: undefined } as const;
    await runSteps([step], { ...options, ...ownSize }, conversion);
    const { width = 0, height = 0 } = await inspectRendered(conversion.source, step.rendersTo as string);
    return { ...image, width, height, styled: false };
  }

  /** Converts an image, at several qualities if its size is limited. */
  async function encode(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<Omit<ConversionResult, 'queuedMs' | 'convertedMs'>> {
    const { source, tools } = conversion;
    const prepared = prepare(image, source, options, tools);
    const printed = { stdout: '', stderr: '' };
    const make = async ({ steps, output }: Plan, attempt: ConvertOptions) => {
      const { stdout, stderr } = await runSteps(steps, attempt, conversion);
      printed.stdout += stdout;
      printed.stderr += stderr;
      const verified = verifyOutput(source, attempt, output);
      if (attempt.format === 'pdf') correctPdfTitle(verified.path);
      if (attempt.format !== 'jxl' || attempt.stripMetadata) return verified;
      return addJxlMetadata(verified, join(source.folder, TO_ENCODE));
    };
    const result = await encodeWithin(
      options,
      source.label,
      () => make(prepared, options),
      (attempt) => make(planAgain(image, attempt, tools), attempt),
    );
    const kept = await keptMetadata(image, result.path, options);
    const lowered = result.quality !== undefined && result.quality < options.quality;
    return { ...result, notes: collectNotes(prepared.notes, printed, { kept, lowered }) };
  }

  return {
    prepare,
    async convertImage(image, options, conversion) {
      const decoded = await decodeFirst(image, options, conversion);
      const known = await measure(decoded, options, conversion);
      return encode(known, options, conversion).catch((error) => {
        // An invalid colour profile is ignored. librsvg uses no profile, and its input is not in the folder any more.
        if (image.type === 'svg' || !isProfileError(error))
          throw explainUnsupportedJpeg(error, known, conversion.source);
        return encode({ ...known, profile: 'useless' }, options, conversion);
      });
    },
  };
}
