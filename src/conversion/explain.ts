/** @module What a conversion would do, and why, before any tool runs. */

import { shellWords } from '../base/shell.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { combinesFrames, OUTPUTS } from '../tables/formats.ts';
import type { Note } from '../tables/notes.ts';
import type { ToolName } from '../tables/tools.ts';
import type { Machine } from './context.ts';
import { type CanonicalPlan, canonicalPlan, conversionKey } from './key.ts';
import { measuringSteps } from './measure/measurements.ts';
import { explain } from './plan/index.ts';
import { completeStep, type Step } from './plan/step.ts';
import { INPUT_FILE, type PlannedJob } from './plan/types.ts';

/** What a conversion would do. */
export interface Explanation {
  /** What the header states. */
  readonly image: ImageInfo;
  /** A sentence for each stage that changes something. */
  readonly sentences: readonly string[];
  /** Notes that are known before the tools run. */
  readonly notes: readonly Note[];
  readonly plan: CanonicalPlan;
  /** The commands with the paths of this machine. */
  readonly steps: readonly Step[];
  /** See {@link conversionKey}. */
  readonly key: string;
  /** Limits of the image and of its conversion, by setting. */
  readonly limits: Readonly<Record<(typeof LIMITS)[number], number>>;
}

const LIMITS = [
  'MAX_FILE_BYTES',
  'MAX_PIXELS',
  'MAX_TOTAL_PIXELS',
  'MAX_FRAMES',
  'CONVERT_TIMEOUT_MS',
] as const;

/** Returns an explanation without the paths of this machine. */
export function toJson({ image, key, sentences, notes, plan, limits }: Explanation) {
  const { type, width, height } = image;
  return { type, width, height, key, sentences, notes, plan, limits };
}

/**
 * Explains a job.
 *
 * @param digest SHA-256 of the source
 */
export function explainJob(
  job: PlannedJob,
  digest: string,
  { toolchain, config, srgbProfile }: Pick<Machine, 'toolchain' | 'config' | 'srgbProfile'>,
): Explanation {
  const canonical = canonicalPlan(job, toolchain);
  const { steps, notes } = job.plan;
  const context = { threads: 1, srgbProfile };
  const limits = Object.fromEntries(LIMITS.map((name) => [name, config[name]]));
  return {
    image: job.image,
    sentences: [...explain(job), ...explainPart(job)],
    notes,
    plan: canonical,
    steps: [...measuringSteps(job, context), ...steps.map((step) => completeStep(step, context, ''))],
    key: conversionKey(digest, canonical),
    limits: limits as Explanation['limits'],
  };
}

/** Returns what becomes of the result as a part of a combined file. */
function explainPart({ options: { format, isPart } }: PlannedJob): string[] {
  if (!isPart) return [];
  const { label } = OUTPUTS[format];
  return [
    combinesFrames(format) ? `becomes a frame of one ${label}` : `its pages become pages of one ${label}`,
  ];
}

/**
 * Formats the commands of steps as lines for a shell. They run in a folder with the source, see {@link formatCopy}.
 *
 * @param pathOf returns the program of a tool
 */
export const formatCommands = (steps: readonly Step[], pathOf: (tool: ToolName) => string): string[] =>
  steps.map(({ tool, args, stdin, stdout }) => shellWords([pathOf(tool), ...args], stdin, stdout));

/** Formats the command that copies a source to where the commands of a conversion read it. */
export const formatCopy = (path: string): string => shellWords(['cp', '--', path, INPUT_FILE]);
