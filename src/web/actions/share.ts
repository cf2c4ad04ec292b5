/** @module Gives results to another app by the share sheet of the system. */
import { announcement, type Result, saved } from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';

/** A result with its file. */
interface Shared {
  readonly file: File;
  readonly result: Result;
}

const toFiles = (all: readonly Shared[]): File[] =>
  all.map(({ file, result }) => {
    const { blob } = result;
    return new File([blob], saveNameOf({ file }, result), { type: blob.type });
  });

/** Returns whether the system has a share sheet that takes these results. */
export const canShare = (all: readonly Shared[]): boolean =>
  all.length > 0 && (navigator.canShare?.({ files: toFiles(all) }) ?? false);

/** Opens the share sheet. */
export async function share(all: readonly Shared[]): Promise<void> {
  try {
    await navigator.share({ files: toFiles(all) });
    for (const { result } of all) saved.add(result);
  } catch (error) {
    if ((error as Error).name !== 'AbortError') announcement.value = 'The files cannot be shared.';
  }
}
