import { planJob } from '../../src/conversion/plan/index.ts';
import { completeStep, type Step } from '../../src/conversion/plan/step.ts';
import type { ConversionJob, ConvertOptions, Plan } from '../../src/conversion/plan/types.ts';
import {
  type KeptMetadata,
  OPTION_NAMES,
  OPTIONS,
  type OptionName,
  optionRow,
} from '../../src/tables/options.ts';

export const METADATA_VALUES = Object.keys(OPTIONS.metadata.type.labels) as KeptMetadata[];

/**
 * Returns values of an option other than its default: the least and the greatest number, all words,
 * and what is permitted besides.
 */
export function valuesOf(name: OptionName): readonly (string | number | boolean)[] {
  const { type, default: fallback } = optionRow(name);
  switch (type.kind) {
    case 'integer':
    case 'number':
      return [type.min, type.max];
    case 'flag':
      return [!fallback];
    case 'numbers':
      return Object.keys(type.labels)
        .map(Number)
        .filter((value) => value !== fallback);
    case 'words':
      return [
        ...Object.keys(type.labels).filter((word) => word !== fallback),
        ...(type.point ? ['30%,70%'] : []),
        ...(type.numbered ? ['2', '1,3-4'] : []),
        ...(type.sized ? ['62x29', '100.5x5080'] : []),
      ];
    case 'area':
      return ['1,2,30,40', '10%,0,12.5%,100%'];
    case 'colour':
      return ['#aabbcc'];
  }
}

/** Returns a value of every option, other than its default. */
export const aValueOfEach = () =>
  Object.fromEntries(OPTION_NAMES.map((name) => [name, valuesOf(name)[0]])) as Partial<ConvertOptions>;

/** Replaces the placeholders of a command. */
export const complete = (step: Step): Step =>
  completeStep(step, { threads: 1, srgbProfile: '/srgb.icc' }, '');

/** Plans a job, and replaces the placeholders of its commands. */
export const planSteps = (job: ConversionJob): Step[] => planJob(job).plan.steps.map(complete);

/** Matches strings that were built from missing values or invalid numbers. */
const NO_VALUE = /undefined|null|NaN|Infinity|\[object/;

/**
 * Returns the invalid arguments of a plan: empty, not strings, built from missing values, or with
 * an unknown placeholder.
 */
export function invalidArguments({ steps }: Plan): unknown[] {
  const values: readonly unknown[] = steps.flatMap((step) => complete(step).args);
  return values.filter(
    (value) => typeof value !== 'string' || value === '' || NO_VALUE.test(value) || /[{}]/.test(value),
  );
}
