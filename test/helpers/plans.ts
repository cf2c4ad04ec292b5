/** @module Commands of plans, and checks of their arguments. */
import { plan } from '../../src/conversion/plan/index.ts';
import { completeStep, type Step } from '../../src/conversion/plan/step.ts';
import type { ConversionJob, Plan } from '../../src/conversion/plan/types.ts';
import { type KeptMetadata, OPTIONS } from '../../src/options.ts';

/** All values of the option `metadata`. */
export const METADATA_VALUES = Object.keys(OPTIONS.metadata.type.labels) as KeptMetadata[];

/** Replaces the placeholders of a command. */
export const complete = (step: Step): Step =>
  completeStep(step, { threads: 1, srgbProfile: '/srgb.icc' }, '');

/** Plans a job, and replaces the placeholders of its commands. */
export const planSteps = (job: ConversionJob): Step[] => plan(job).steps.map(complete);

/** Matches strings that were built from missing values or invalid numbers. */
const NO_VALUE = /undefined|null|NaN|Infinity|\[object/;

/** Returns the invalid arguments of a plan: empty, not strings, built from missing values, or with an unknown placeholder. */
export function invalidArguments({ steps }: Plan): unknown[] {
  const values: readonly unknown[] = steps.flatMap((step) => complete(step).args);
  return values.filter(
    (value) => typeof value !== 'string' || value === '' || NO_VALUE.test(value) || /[{}]/.test(value),
  );
}
