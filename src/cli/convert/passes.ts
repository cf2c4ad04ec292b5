/** @module Searches the inputs once, or repeatedly with `--watch`, and converts the files that it finds. */
import type { BulkOptions } from './bulk-options.ts';
import type { Input } from './input.ts';
import type { Inputs } from './inputs.ts';
import { askToDelete, deleteOrphans } from './orphans.ts';
import { convertAll, type RunOptions } from './run.ts';
import { type OutputJob, planOutputs, type Target } from './targets.ts';
import { createWatcher, type Watcher } from './watch.ts';

/** Options of {@link convertInputs}. */
export interface PassOptions {
  readonly inputs: Inputs;
  readonly target: Target;
  readonly bulk: BulkOptions;
  readonly run: RunOptions;
}

/** Errors after which a search is incomplete, so that missing sources can still exist. */
const INCOMPLETE = ['UNREADABLE', 'NO_SUCH_FILE', 'NO_IMAGES', 'NAME_NOT_UTF8'];

/**
 * Converts all inputs, and with `--watch` those that arrive until the signal aborts.
 *
 * @throws {StopError} if no file can be converted any more
 * @throws {CliError} if the converter cannot start
 */
export async function convertInputs(options: PassOptions): Promise<void> {
  const { inputs, bulk, run } = options;
  if (!bulk.watch) return searchAll(options, inputs.find());
  const watcher = createWatcher({ inputs, notice: run.report.notice });
  try {
    await convertChanges({ ...options, run: { ...run, onFailure: watcher.failed } }, watcher);
  } catch (error) {
    if (!run.signal.aborted) throw error;
  } finally {
    watcher.close();
  }
}

/** Converts files that arrive, until the signal aborts. */
async function convertChanges(options: PassOptions, watcher: Watcher): Promise<void> {
  const { inputs, run } = options;
  const search = (): Promise<void> => searchAll(options, watcher.complete(inputs.find(watcher.addFolder)));
  await search();
  for (;;) {
    const changes = await watcher.changes(run.signal);
    if (changes) await convertAll(plan(options, changes), run);
    else await search();
  }
}

/** Converts the inputs of a complete search. Afterwards, deletes the results of sources that are gone. */
async function searchAll(options: PassOptions, found: AsyncIterable<Input>): Promise<void> {
  const { inputs, bulk, run } = options;
  const { report, library, signal } = run;
  let isComplete = true;
  async function* checked(): AsyncGenerator<Input> {
    for await (const input of found) {
      if ('error' in input && INCOMPLETE.includes(input.error.code)) isComplete = false;
      yield input;
    }
  }
  if (report.wantsTotal && !bulk.watch) void countJobs(options).catch(() => {}); // the search itself reports errors
  await convertAll(plan(options, checked()), run);
  if (!bulk.delete || !library || signal.aborted) return;
  if (!isComplete) return report.notice('Nothing was deleted, because not all of the input could be read.');
  await deleteOrphans({
    library,
    roots: inputs.roots,
    shard: bulk.shard,
    report,
    signal,
    confirm: async (count) => bulk.yes || askToDelete(count, signal),
  });
}

/** Counts the files for the progress bar, while others are converted. */
async function countJobs(options: PassOptions): Promise<void> {
  let total = 0;
  for await (const job of plan(options, options.inputs.find())) {
    if (!('notice' in job)) total += 1;
  }
  options.run.report.setTotal(total);
}

/** Plans the outputs. With `--update` or `--shard`, the name of a result must not depend on the other inputs. */
function plan({ inputs, target, bulk }: PassOptions, found: AsyncIterable<Input>): AsyncIterable<OutputJob> {
  const sameNames = bulk.update || bulk.shard ? 'reject' : 'number';
  return planOutputs(found, { target, inputs, sameNames, shard: bulk.shard });
}
