/** @module What a conversion would do, and why, before any tool runs. */
import { shellWords } from '../base/shell.ts';
import { combinesFrames, OUTPUTS } from '../tables/formats.ts';
import type { ToolName } from '../tables/tools.ts';
import type { Machine } from './context.ts';
import { canonicalPlan, conversionKey } from './key.ts';
import { measuringSteps } from './measure/measurements.ts';
import { explain } from './plan/index.ts';
import { completeStep, type Step } from './plan/step.ts';
import { type AdmittedJob, INPUT_FILE } from './plan/types.ts';

/** What a conversion would do. */
export type Explanation = ReturnType<typeof explainJob>;

/** Limits of an image and of its conversion. */
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

/** Explains a job. `digest` is the SHA-256 of its source. */
export function explainJob(
  job: AdmittedJob,
  digest: string,
  { toolchain, config, srgbProfile }: Pick<Machine, 'toolchain' | 'config' | 'srgbProfile'>,
) {
  const canonical = canonicalPlan(job, toolchain);
  const { steps, notes } = job.plan;
  const context = { threads: 1, srgbProfile };
  const limits = Object.fromEntries(LIMITS.map((name) => [name, config[name]]));
  return {
    /** What the header states. */
    image: job.image,
    /** A sentence for each stage that changes something. */
    sentences: [...explain(job), ...explainPart(job)],
    /** Notes that are known before the tools run. */
    notes,
    plan: canonical,
    /** The commands with the paths of this machine. */
    steps: [...measuringSteps(job, context), ...steps.map((step) => completeStep(step, context, ''))],
    key: conversionKey(digest, canonical),
    /** By setting. */
    limits: limits as Readonly<Record<(typeof LIMITS)[number], number>>,
  };
}

/** Returns what becomes of the result as a part of a combined file. */
function explainPart({ options: { format, isPart } }: AdmittedJob): string[] {
  if (!isPart) return [];
  const { label } = OUTPUTS[format];
  return [
    combinesFrames(format) ? `becomes a frame of one ${label}` : `its pages become pages of one ${label}`,
  ];
}

/** Formats the commands as lines for a shell, in a folder with the source: {@link formatCopy}. */
export const formatCommands = (steps: readonly Step[], pathOf: (tool: ToolName) => string): string[] =>
  steps.map(({ tool, args, stdin, stdout }) => shellWords([pathOf(tool), ...args], stdin, stdout));

/** Formats the command that copies a source to where the commands of a conversion read it. */
export const formatCopy = (path: string): string => shellWords(['cp', '--', path, INPUT_FILE]);
