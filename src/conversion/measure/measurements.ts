/** @module All measurements of an image, and their commands. */
import { completeStep, type Step, type StepContext } from '../plan/step.ts';
import type { AdmittedJob, ConversionJob, PlannedJob } from '../plan/types.ts';
import { ATTENTION } from './attention.ts';
import { DECODED } from './decode-first.ts';
import { DRAWN } from './drawing.ts';
import type { Measurement } from './measurement.ts';
import { TRIMMED } from './trim.ts';

/** In this order: each can depend on what those before it have found. */
export const MEASUREMENTS: readonly Measurement<unknown>[] = [DECODED, DRAWN, TRIMMED, ATTENTION];

/** Returns the jobs of the measurements that a result needs, as known before any has run. */
export const measuringJobs = (job: ConversionJob): PlannedJob[] =>
  MEASUREMENTS.flatMap((measurement) => measurement.plan(job) ?? []);

/** Returns the commands of the measurements of a job. The suffix of the result is not in them. */
export const measuringSteps = (job: AdmittedJob, context: StepContext): Step[] =>
  job.measuring.flatMap(({ plan, suffix }) =>
    plan.steps.map((step) => completeStep(step, context, suffix === job.suffix ? '' : suffix)),
  );
