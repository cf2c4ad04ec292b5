import { signal } from '@preact/signals';
import { formats } from './formats.ts';
import { add, announcement } from './items.ts';

/** Where files come from: dropped anywhere on the page, pasted, or picked. */

/** Whether files are being dragged over the page. */
export const dragged = signal(false);
/** How many files of the last folders were left out. */
export const skipped = signal(0);
export const leftOutWords = (): string =>
  `${skipped.value} left out: no images of a type that can be converted.`;

/** From now on the whole page takes files that are dropped or pasted. */
export function listenForFiles(): void {
  addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    dragged.value = true;
  });
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (!relatedTarget) dragged.value = false; // it left the window
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

/** Adds files, and the images in folders; the other things that folders have are passed over, which is said. */
export function addFiles(files: readonly File[], inFolders: readonly File[] = []): void {
  const images = inFolders.filter(looksLikeImage);
  const added = [...files, ...images];
  if (added.length > 0) add(added);
  skipped.value = inFolders.length - images.length;
  if (skipped.value > 0)
    announcement.value = `${added.length > 0 ? announcement.value : ''} ${leftOutWords()}`;
}

function looksLikeImage({ name, type }: File): boolean {
  const extension = name.toLowerCase().replace(/^.*\./s, '');
  return type.startsWith('image/') || (formats.value?.input.includes(extension) ?? false);
}

/** Everything must be asked for at once: after the first wait the browser takes the items away. */
async function addDropped(dropped: readonly DataTransferItem[]): Promise<void> {
  const entries = dropped.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const files = entries.flatMap(({ entry, file }) => (file && !entry?.isDirectory ? file : []));
  const inFolders: File[] = [];
  for (const { entry } of entries) {
    if (entry?.isDirectory) inFolders.push(...(await filesBelow(entry as FileSystemDirectoryEntry)));
  }
  addFiles(files, inFolders);
}

async function filesBelow(folder: FileSystemDirectoryEntry): Promise<File[]> {
  const reader = folder.createReader();
  const found: File[] = [];
  // A reader gives some at a time, and none when there are no more.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return found;
    for (const entry of some) found.push(...(await filesOf(entry)));
  }
}

function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isDirectory) return filesBelow(entry as FileSystemDirectoryEntry);
  return new Promise((resolve, reject) =>
    (entry as FileSystemFileEntry).file((file) => resolve([file]), reject),
  );
}
