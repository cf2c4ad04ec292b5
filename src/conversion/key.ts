/**
 * @module The conversion key: equal keys mean equal results, except the two dates in a PDF. It is known before any tool runs.
 */
import { createHash, hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { VERSION } from '../folders.ts';
import { isHeif } from '../formats.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { toolsFor } from './plan/job.ts';
import { completeStep, type Step, type StepContext } from './plan/step.ts';
import { type ConversionJob, INPUT_FILE, type Plan, type PlannedJob } from './plan/types.ts';
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

/** What the placeholders of a plan stand for in its conversion key. */
const CANONICAL = { threads: 1, srgbProfile: 'srgb.icc' };

/** Returns the plan of a job without the path of a file, and without the number of threads that happen to be free. */
export function canonicalPlan(job: PlannedJob, toolchain: Toolchain): CanonicalPlan {
  const { image, options, plan } = job;
  const first = firstSteps(plan, CANONICAL);
  const steps = [...first, ...plan.steps.map((step) => completeStep(step, CANONICAL, ''))];
  const isOpen =
    first.length > 0 || image.incomplete === true || (options.maxBytes ?? options.watermark) !== undefined;
  return { steps, versions: versionsOf(steps, job, toolchain), ...(isOpen && { options }) };
}

/** Returns the commands on whose output those of a plan depend. */
export function firstSteps({ decoding, measuring, trimming, reducing }: Plan, context: StepContext): Step[] {
  const jobs = [trimming, reducing].flatMap((job) => job?.plan.steps ?? []);
  const steps = [decoding, measuring, ...jobs].filter((step) => step !== undefined);
  return steps.map((step) => completeStep(step, context, reducing?.suffix ?? ''));
}

function versionsOf(
  steps: readonly Step[],
  { image, decoder, options, tools }: ConversionJob,
  toolchain: Toolchain,
): Record<string, string> {
  const { watermark } = options;
  const watermarkTools = watermark ? toolsFor(watermark.type, 'png', tools.magick) : [];
  const names = [...new Set([...steps.map(({ tool }) => tool), ...watermarkTools])].sort();
  const used = names.map((name) => [name, toolchain[name]?.version ?? ''] as const);
  const { libheif } = toolchain.magick ?? {};
  const isReader = libheif && !decoder && isHeif(image.type);
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
  return hash('sha256', content);
}

/** Returns the SHA-256 of a source, in hex. It must not have been repaired. */
export async function digestOf({ sha256, folder }: ConversionInput): Promise<string> {
  return sha256 ?? hashFile(join(folder, INPUT_FILE));
}

/** Returns the SHA-256 of a file, in hex. */
export async function hashFile(path: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(path), digest);
  return digest.digest('hex');
}
