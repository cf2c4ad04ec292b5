/** @module What each measurement of an image states about itself. */
import type { RunningConversion } from '../context.ts';
import type { ConversionJob, Measured, PlannedJob } from '../plan/types.ts';

/** Something that a plan can depend on and no header states, and how tools find it out. */
export interface Measurement<T> {
  /**
   * Whether an error is that of one result, which can be skipped. Then the image can be repaired
   * after it. Otherwise, it is that of the file.
   */
  readonly isOfResult: boolean;
  /** Returns the job with the commands for it; undefined if it is known, or has no effect. */
  plan(job: ConversionJob): PlannedJob | undefined;
  /**
   * Runs the commands, once for all results that have the same. `all` are those of the file.
   *
   * @throws {ServiceError} that names the file
   */
  find(measuring: PlannedJob, running: RunningConversion, all: readonly ConversionJob[]): Promise<T>;
  /**
   * Returns what it means for a result.
   *
   * @throws {ServiceError} that names the file
   */
  read(found: T, job: ConversionJob, measuring: PlannedJob, running: RunningConversion): Measured;
}
