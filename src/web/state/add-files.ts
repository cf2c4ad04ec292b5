/** @module Adds files that are dropped, pasted or picked. */

import { signal } from '@preact/signals';
import { formats } from './formats.ts';
import { type AddedFile, add, announcement } from './items.ts';

/** Whether files are being dragged over the page. */
export const dragged = signal(false);
/** Number of files that were skipped in the last added folders. */
export const skipped = signal(0);
/** Formats the number of skipped files. */
export const skippedMessage = (): string =>
  `${skipped.value} skipped: not readable, or not images of a supported type.`;

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

/** A file in a folder; undefined if it cannot be read, for example because it was deleted meanwhile. */
type FolderFile = AddedFile | undefined;

/** Compares names as file managers do. Browsers list the files of a folder in the order of the disk. */
const { compare: compareNames } = new Intl.Collator(undefined, { numeric: true });

/** Adds the images of a picked folder. */
export const addFolder = (files: readonly File[]): void =>
  addFiles(
    [],
    files
      .map((file) => ({ file, path: file.webkitRelativePath }))
      .sort((one, other) => compareNames(one.path, other.path)),
  );

/** Adds files and the images in folders. Skips everything else in folders and announces its number. */
export function addFiles(files: readonly File[], inFolders: readonly FolderFile[] = []): void {
  const images = inFolders.filter((added) => added !== undefined).filter(({ file }) => looksLikeImage(file));
  const added = [...files.map((file) => ({ file, path: file.name })), ...images];
  if (added.length > 0) add(added);
  skipped.value = inFolders.length - images.length;
  if (skipped.value > 0)
    announcement.value = `${added.length > 0 ? announcement.value : ''} ${skippedMessage()}`;
}

function looksLikeImage({ name, type }: File): boolean {
  const extension = name.toLowerCase().replace(/^.*\./s, '');
  return type.startsWith('image/') || (formats.value?.input.includes(extension) ?? false);
}

/**
 * Adds dropped files and folders. Reads all entries synchronously, since the browser clears the list after an await.
 */
async function addDropped(dropped: readonly DataTransferItem[]): Promise<void> {
  const entries = dropped.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const files = entries.flatMap(({ entry, file }) => (file && !entry?.isDirectory ? file : []));
  const inFolders: FolderFile[] = [];
  for (const { entry } of entries) {
    if (entry?.isDirectory) inFolders.push(...(await collectFiles(entry as FileSystemDirectoryEntry)));
  }
  addFiles(files, inFolders);
}

async function collectFiles(folder: FileSystemDirectoryEntry): Promise<FolderFile[]> {
  const reader = folder.createReader();
  const entries: FileSystemEntry[] = [];
  const files: FolderFile[] = [];
  // readEntries returns a batch at a time, and an empty one at the end.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[] | undefined>((resolve) =>
      reader.readEntries(resolve, () => resolve(undefined)),
    );
    if (!batch) files.push(undefined);
    if (!batch?.length) break;
    entries.push(...batch);
  }
  entries.sort((one, other) => compareNames(one.name, other.name));
  for (const entry of entries) files.push(...(await readEntry(entry)));
  return files;
}

function readEntry(entry: FileSystemEntry): Promise<FolderFile[]> {
  if (entry.isDirectory) return collectFiles(entry as FileSystemDirectoryEntry);
  return new Promise((resolve) =>
    (entry as FileSystemFileEntry).file(
      (file) => resolve([{ file, path: entry.fullPath.slice(1) }]),
      () => resolve([undefined]),
    ),
  );
}
