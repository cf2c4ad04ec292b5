/** @module A decoded image: a truncated PNG that is completed, or the PNG of another program. */
import { join } from 'node:path';
import type { ImageInfo } from '../../images/image-info.ts';
import { inspect } from '../../images/index.ts';
import { completePng } from '../../images/png/png-repair.ts';
import { copyExifToText } from '../../images/png/png-text.ts';
import { splitFrames } from '../../images/png/png-writer.ts';
import type { Config } from '../../tables/config.ts';
import { ClientDisconnectedError, isDiskFull, serviceErrorFrom } from '../../tables/errors.ts';
import { INPUTS } from '../../tables/formats.ts';
import type { RunningConversion } from '../context.ts';
import { conversionLimit } from '../limits/limits.ts';
import { explainFailure, invalidOutputError, isNoFile } from '../output/tool-errors.ts';
import { planDecoding } from '../plan/index.ts';
import { kindsOf } from '../plan/job.ts';
import { DECODED_FILE, INPUT_FILE } from '../plan/types.ts';
import { runSteps } from '../steps/run-steps.ts';
import type { Measurement } from './measurement.ts';

/** Decodes what ImageMagick cannot read. */
export const DECODED: Measurement<ImageInfo> = {
  isOfResult: false,
  plan(job) {
    const steps = planDecoding(job);
    return steps.length > 0 || job.image.incomplete ? { ...job, plan: { steps, notes: [] } } : undefined;
  },
  async find(measuring, running, all) {
    const { image, plan } = measuring;
    const { source, config } = running;
    if (image.incomplete) return { ...(await completeInput(running)), copyright: image.copyright };
    await runSteps(plan.steps, measuring, running).catch((error) => {
      throw explainFailure(error, kindsOf(measuring), source);
    });
    const keepsMetadata = all.some(({ options }) => options.metadata === 'all');
    return readDecoded(image, source.folder, config, keepsMetadata).catch((error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutputError(`${DECODED_FILE}: ${error.code}`, source)
        : error;
    });
  },
  read: (image) => ({ image }),
};

/**
 * Inspects a decoded image, and writes each frame within the limits to a file.
 *
 * @throws {Error} with the code of the failed system call, if the program has written no PNG, or a
 *   link with its name or the name of a frame
 */
export async function readDecoded(
  image: ImageInfo,
  folder: string,
  config: Config,
  keepsMetadata: boolean,
): Promise<ImageInfo> {
  const { width, height, deep, flat, ...png } = await inspect(join(folder, DECODED_FILE), 'png');
  // djxl 0.7 writes a profile of greys for greys of sRGB, which need none.
  const profile = png.profile === 'grey' && image.profile === 'none' ? 'unusable' : png.profile;
  if (keepsMetadata && image.metadata?.includes('exif')) await copyExifToText(join(folder, DECODED_FILE));
  const maxFrames = Math.min(config.MAX_FRAMES, config.MAX_TOTAL_PIXELS / ((width ?? 1) * (height ?? 1)));
  const frames = png.hasIgnoredFrames ? await splitFrames(folder, DECODED_FILE, maxFrames) : undefined;
  const { hasUncountedFrames: _, ...rest } = image;
  return {
    ...rest,
    ...(width !== undefined && height !== undefined && { width, height }),
    ...(profile && (profile !== 'none' || !(image.declaredColour || image.profileFile)) && { profile }),
    deep,
    flat,
    hasIgnoredFrames: !INPUTS[image.type].animation && image.hasIgnoredFrames,
    decoded: frames?.files ?? [DECODED_FILE],
    ...(frames && { animation: frames.animation }),
  };
}

/**
 * Completes a truncated PNG, which ImageMagick rejects.
 *
 * @throws {ServiceError} if the file has no pixels, or if time or disk space run out
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function completeInput(
  running: Pick<RunningConversion, 'source' | 'config' | 'signal' | 'deadline'>,
): Promise<ImageInfo> {
  const { source, config, signal, deadline } = running;
  const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())));
  const path = join(source.folder, INPUT_FILE);
  const completed = await completePng(path, AbortSignal.any([signal, timeout])).catch((cause) => {
    if (signal.aborted) throw new ClientDisconnectedError({ cause });
    if (timeout.aborted)
      throw serviceErrorFrom(cause, 'CONVERSION_TIMEOUT', source.label, conversionLimit(config));
    throw isDiskFull(cause) ? serviceErrorFrom(cause, 'DISK_FULL') : cause;
  });
  return completed ?? Promise.reject(invalidOutputError('an image without pixels', source));
}
