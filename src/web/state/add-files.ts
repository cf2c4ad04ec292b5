/** @module Adds files that are dropped, pasted or picked. */
import { signal } from '@preact/signals';
import { isSystemFile, naturalOrder } from '../../base/text.ts';
import { inputTypeOf } from '../format.ts';
import { formats } from './formats.ts';
import { type AddedFile, add, announcement, fileKey, items } from './items.ts';

/** Whether files are being dragged over the page. */
export const dragged = signal(false);
/** Why a file was skipped. */
type SkipReason = 'not readable' | 'unsupported type' | 'already in the list';

/** The paths of the files that were skipped when files were added last, by reason. */
export const skipped = signal<ReadonlyMap<SkipReason, readonly string[]>>(new Map());
/** Formats the number of files that were skipped for a reason. */
export const formatSkipped = (reason: SkipReason, { length }: readonly string[]): string =>
  `${length} skipped: ${reason}`;

/** Listens for files that are dropped or pasted anywhere on the page. */
export function listenForFiles(): void {
  addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    dragged.value = true;
  });
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (!relatedTarget) dragged.value = false; // left the window
  });
  addEventListener('drop', async (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    dragged.value = false;
    await addDropped([...event.dataTransfer.items]);
  });
  addEventListener('paste', (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length > 0) addFiles(files);
  });
}

/** A file to add; without `file` if it cannot be read, as it was deleted meanwhile. */
type FoundFile = Pick<AddedFile, 'path'> & Partial<AddedFile>;

const compareNames = naturalOrder();

/** Adds files, and the images of a picked folder. */
export const addFiles = (files: readonly File[]): void =>
  addFound(files.map((file) => ({ file, path: file.webkitRelativePath || file.name })));

/** Adds files by name, except those in the list, in folders other than images, and system files. */
function addFound(found: readonly FoundFile[]): void {
  const known = new Set(items.value.filter(({ state }) => state.value.at !== 'failed').map(fileKey));
  const added: AddedFile[] = [];
  const skips = new Map<SkipReason, string[]>();
  const skip = (reason: SkipReason, path: string) => skips.set(reason, [...(skips.get(reason) ?? []), path]);
  const sorted = found.toSorted((one, other) => compareNames(one.path, other.path));
  for (const { file, path } of sorted.filter((each) => !isSystemFile(each.path))) {
    if (!file) skip('not readable', path);
    else if (path.includes('/') && !looksLikeImage(file)) skip('unsupported type', path);
    else if (known.has(fileKey({ file, path }))) skip('already in the list', path);
    else {
      known.add(fileKey({ file, path }));
      added.push({ file, path });
    }
  }
  if (added.length > 0) add(added);
  skipped.value = skips;
  const messages = [...skips].map(([reason, paths]) => `${formatSkipped(reason, paths)}.`);
  if (messages.length > 0)
    announcement.value = [...(added.length > 0 ? [announcement.value] : []), ...messages].join(' ');
}

function looksLikeImage(file: File): boolean {
  const found = inputTypeOf(file);
  return file.type.startsWith('image/') || (found && formats.value?.input.includes(found)) === true;
}

/** Adds dropped files and folders. All entries are read first: an await clears the list. */
async function addDropped(dropped: readonly DataTransferItem[]): Promise<void> {
  const entries = dropped.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found: FoundFile[] = [];
  for (const { entry, file } of entries) {
    if (entry?.isDirectory) found.push(...(await collectFiles(entry as FileSystemDirectoryEntry)));
    else if (file) found.push({ file, path: file.name });
  }
  addFound(found);
}

async function collectFiles(folder: FileSystemDirectoryEntry): Promise<FoundFile[]> {
  const reader = folder.createReader();
  const files: FoundFile[] = [];
  // readEntries returns a batch at a time, and an empty one at the end.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[] | undefined>((resolve) =>
      reader.readEntries(resolve, () => resolve(undefined)),
    );
    if (!batch) files.push({ path: pathOf(folder) });
    if (!batch?.length) return files;
    for (const entry of batch) files.push(...(await readEntry(entry)));
  }
}

function readEntry(entry: FileSystemEntry): Promise<FoundFile[]> {
  if (entry.isDirectory) return collectFiles(entry as FileSystemDirectoryEntry);
  const path = pathOf(entry);
  return new Promise((resolve) =>
    (entry as FileSystemFileEntry).file(
      (file) => resolve([{ file, path }]),
      () => resolve([{ path }]),
    ),
  );
}

/** Returns the path of a dropped file or folder, without the `/` at its start. */
const pathOf = ({ fullPath }: FileSystemEntry): string => fullPath.slice(1);
