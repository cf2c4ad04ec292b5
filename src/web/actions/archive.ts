/** @module Builds one ZIP archive of all results in the browser. */
import { signal } from '@preact/signals';
import { baseNameOf, createUniqueNamer, portableName } from '../../base/text.ts';
import { extensionOf } from '../format.ts';
import { announcement, done, saved } from '../state/items.ts';
import { saveNameOf, waitForName } from '../state/names.ts';

/** The part of the File System API that only Chromium has, and TypeScript does not declare. */
interface SavePicker {
  showSaveFilePicker?(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

/** File name of the archive. */
const NAME = 'converted.zip';
/**
 * Size in bytes from which the archive is written directly into a file that the user selects, if
 * the browser can do that. A smaller archive becomes a blob, which needs no dialog.
 */
const MIN_STREAM_BYTES = 500_000_000;
/** Time after which browsers have read the blob of a download, in ms. */
const REVOKE_MS = 60_000;

/** Loads the writer of archives, which the first visit does not need. */
export const loadZipWriter = () => import('client-zip');
type ZipWriter = Awaited<ReturnType<typeof loadZipWriter>>;

/** Whether the archive is being built. */
export const packing = signal(false);

/** Builds an archive of all results, with their folders, and saves it. Nothing is uploaded. */
export async function pack(): Promise<void> {
  packing.value = true;
  try {
    const results = done.value;
    for (const { result } of results) await waitForName(result);
    const entries = toEntries();
    const writer = await loadZipWriter();
    const isLarge = writer.predictLength(entries) >= MIN_STREAM_BYTES;
    const isComplete = isLarge ? await saveStream(entries, writer) : await saveBlob(entries, writer);
    if (!isComplete) return;
    for (const { result } of results) saved.add(result);
    announcement.value = `${NAME} is ready.`;
  } catch (error) {
    announcement.value = `${NAME} cannot be written: ${(error as Error).message}`;
  } finally {
    packing.value = false;
  }
}

/** Lists the results. No two have paths that are equal if a file system ignores case. */
function toEntries() {
  const uniqueName = createUniqueNamer();
  return done.value.map(({ file, path, result }) => {
    const { blob } = result;
    const extension = extensionOf(result.name);
    const folders = path.split('/').slice(0, -1).map(portableName);
    const base = portableName(baseNameOf(saveNameOf({ file }, result)));
    const name = uniqueName([...folders, base].join('/'), extension);
    return { name, input: blob, size: blob.size, lastModified: file.lastModified };
  });
}

type Entries = ReturnType<typeof toEntries>;

/** Downloads the archive as a blob. */
async function saveBlob(entries: Entries, { downloadZip }: ZipWriter): Promise<true> {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await downloadZip(entries).blob());
  link.download = NAME;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MS);
  return true;
}

/** Writes the archive into a file that the user selects; false if the dialog is closed. */
async function saveStream(entries: Entries, writer: ZipWriter): Promise<boolean> {
  const picker = window as SavePicker;
  if (!picker.showSaveFilePicker) return saveBlob(entries, writer);
  const handle = await picker.showSaveFilePicker({ suggestedName: NAME }).catch(() => undefined);
  if (!handle) return false;
  await writer.makeZip(entries).pipeTo(await handle.createWritable());
  return true;
}
