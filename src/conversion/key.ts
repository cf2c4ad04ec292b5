/**
 * @module The conversion key: equal keys mean equal results, except the two dates in a PDF. It is
 * known before any tool runs.
 */
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { hashFile } from '../files/system.ts';
import { VERSION } from '../folders.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { canHavePalette, isHeif } from '../tables/formats.ts';
import type { ToolName } from '../tables/tools.ts';
import type { ConversionInput } from './context.ts';
import { measuringSteps } from './measure/measurements.ts';
import { toolsFor } from './plan/job.ts';
import { completeStep, type Step } from './plan/step.ts';
import { type AdmittedJob, type ConversionJob, INPUT_FILE, type Plan } from './plan/types.ts';

/** A plan that depends on nothing but the image, the options and the versions of the tools. */
interface CanonicalPlan {
  readonly steps: readonly Step[];
  /** Versions of imagemill, which repairs images, and of each tool that runs. */
  readonly versions: Readonly<Record<string, string>>;
  /**
   * Set if later steps depend on what the first ones show or on the size of the result, so that the
   * steps alone do not determine it.
   */
  readonly options: ConversionJob['options'] | undefined;
  /** What becomes of the files that the steps write for the pages of a PDF. */
  readonly document: Plan['document'];
}

/** What the placeholders of a plan stand for in its conversion key. */
const CANONICAL = { threads: 1, srgbProfile: 'srgb.icc' };

/** Returns the plan of a job without paths, and without the number of threads that are free. */
export function canonicalPlan(job: AdmittedJob, toolchain: Toolchain): CanonicalPlan {
  const { image, options, plan } = job;
  const first = measuringSteps(job, CANONICAL);
  const steps = [...first, ...plan.steps.map((step) => completeStep(step, CANONICAL, ''))];
  const isOpen =
    first.length > 0 ||
    image.incomplete === true ||
    (job.search ?? options.candidates ?? options.watermark) !== undefined;
  const versions = versionsOf(steps, job, toolchain);
  return { steps, versions, options: isOpen ? options : undefined, document: plan.document };
}

function versionsOf(
  steps: readonly Step[],
  { image, decoder, options, tools }: ConversionJob,
  toolchain: Toolchain,
): Record<string, string> {
  const { watermark } = options;
  const watermarkTools = watermark ? toolsFor(watermark.type, 'png', tools.magick) : [];
  const candidates = options.candidates ?? [];
  const others: ToolName[] = [
    ...candidates.flatMap((format) => toolsFor(image.type, format, tools.magick)),
    ...(candidates.some(canHavePalette) && tools.selectsColours ? (['pngquant'] as const) : []),
  ];
  const names = [...new Set([...steps.map(({ tool }) => tool), ...watermarkTools, ...others])].sort();
  const used = names.map((name) => [name, toolchain[name]?.version ?? ''] as const);
  const { libheif } = toolchain.magick ?? {};
  const isReader = libheif && !decoder && isHeif(image.type);
  return { imagemill: VERSION, ...Object.fromEntries(used), ...(isReader && { libheif }) };
}

/** Returns the conversion key, SHA-256 in hex, from the digest of the source and the plan. */
export function conversionKey(digest: string, planned: CanonicalPlan): string {
  const { steps, versions, options, document } = planned;
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  const sorted = given.sort(([a], [b]) => (a < b ? -1 : 1));
  const content = JSON.stringify([digest, steps, versions, sorted, ...(document ? [document] : [])]);
  return hash('sha256', content);
}

/** Returns the conversion key of a combined file, in hex, from those of its parts and the rest. */
export const combinedKey = (keys: readonly string[], ...others: readonly unknown[]): string =>
  hash('sha256', JSON.stringify(['combined', keys, ...others]));

/** Returns the SHA-256 of a source, in hex. It must not have been repaired. */
export async function digestOf({ sha256, folder }: ConversionInput): Promise<string> {
  return sha256 ?? hashFile(join(folder, INPUT_FILE));
}
