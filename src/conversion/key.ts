/**
 * @module The conversion key: equal keys mean equal results, except the two dates in a PDF. It is known before any tool runs.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { VERSION } from '../folders.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { createReducingJob } from './plan/attention.ts';
import { plan, planDecoding, planMeasuring } from './plan/index.ts';
import { createJob } from './plan/job.ts';
import { type ConversionJob, INPUT_FILE, type Step } from './plan/types.ts';
import type { ConversionInput } from './types.ts';

/** A plan that depends on nothing but the image, the options and the versions of the tools. */
export interface CanonicalPlan {
  readonly steps: readonly Step[];
  /** Versions of imagemill, which repairs images, and of each tool that runs. */
  readonly versions: Readonly<Record<string, string>>;
  /**
   * Set if later steps depend on what the first ones show or on the size of the result, so that the steps alone do not
   * determine it.
   */
  readonly options?: ConversionJob['options'];
}

/** Returns the plan of a job without the path of a file, and without the number of threads that happen to be free. */
export function canonicalPlan({ image, options, tools }: ConversionJob, toolchain: Toolchain): CanonicalPlan {
  const job = createJob(image, options, { ...tools, threads: 1, srgbProfile: basename(tools.srgbProfile) });
  const first = planFirst(job);
  const steps = [...first, ...plan(job).steps];
  const isOpen = first.length > 0 || image.decoder !== undefined || options.maxBytes !== undefined;
  return { steps, versions: versionsOf(steps, job, toolchain), ...(isOpen && { options }) };
}

/** Plans the commands on whose output those of {@link plan} depend. */
export function planFirst(job: ConversionJob): Step[] {
  const reducing = createReducingJob(job);
  const steps = [planDecoding(job), planMeasuring(job), ...(reducing ? plan(reducing).steps : [])];
  return steps.filter((step) => step !== undefined);
}

function versionsOf(
  steps: readonly Step[],
  { image, decoder }: ConversionJob,
  toolchain: Toolchain,
): Record<string, string> {
  const names = [...new Set(steps.map(({ tool }) => tool))].sort();
  const used = names.map((name) => [name, toolchain[name]?.version ?? ''] as const);
  const { libheif } = toolchain.magick ?? {};
  const isReader = libheif && !decoder && (image.type === 'avif' || image.type === 'heic');
  return { imagemill: VERSION, ...Object.fromEntries(used), ...(isReader && { libheif }) };
}

/**
 * Returns the conversion key: SHA-256, in hex.
 *
 * @param digest SHA-256 of the source
 */
export function conversionKey(digest: string, planned: CanonicalPlan): string {
  const { steps, versions, options } = planned;
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  const content = JSON.stringify([digest, steps, versions, given.sort(([a], [b]) => (a < b ? -1 : 1))]);
  return createHash('sha256').update(content).digest('hex');
}

/** Returns the SHA-256 of a source, in hex. It must not have been repaired. */
export async function digestOf({ sha256, folder }: ConversionInput): Promise<string> {
  return sha256 ?? hashFile(join(folder, INPUT_FILE));
}

/** Returns the SHA-256 of a file, in hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
