/** @module Sends several results as a ZIP archive, which is written while it is sent. */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { ZipArchive } from 'archiver';
import type { Response } from 'express';
import { baseNameOf, createUniqueNamer, portableName } from '../../base/text.ts';
import type { ConversionOutcome, ConversionResult } from '../../conversion/context.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import { hashFile } from '../../files/system.ts';
import { describeKinds } from '../../images/revealed/fields-table.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import { errorBody } from './error-handler.ts';
import { holdInMemory, pendingResponse, toSendError } from './response.ts';

/**
 * Maximum size of an entry that is stored, in bytes. archiver writes the size in front of an entry
 * only if it has the whole entry in memory. It writes the size of a stream behind the data, where
 * sequential readers such as Java's ZipInputStream find it only if the data is deflated. Therefore,
 * larger entries are deflated, which need not reduce them.
 */
const MAX_STORED_BYTES = 8 * 1024 ** 2;

/** zlib's fastest level: others take up to twice the time for a photo, and save next to nothing. */
const DEFLATE_LEVEL = 1;
/** Maximum archives compressed at once: 150 MB take seconds. Level 0, for others, only copies. */
const MAX_COMPRESSED_ARCHIVES = 2;
let compressedArchives = 0;

/** One result of a file, or its error. */
export interface ArchiveItem {
  /** Position of the file in the request, from 0. */
  readonly index: number;
  /** The file name that the client sent. */
  readonly name: string | undefined;
  /** Folder of the file in an uploaded archive, which its results have, too. */
  readonly archiveFolder?: string | undefined;
  readonly outcome: ConversionOutcome;
}

/** A result, and its unique name in the archive. */
interface Entry {
  readonly item: ArchiveItem;
  readonly name: string;
  readonly converted: ConversionResult;
}

/**
 * Sends an archive of the results, and resolves when it has been sent. If conversions failed,
 * `errors.json` describes them. An error after the first byte closes the connection, so that a
 * client cannot mistake a truncated archive for a complete one.
 *
 * @param disk disk space accounting of the request
 * @param manifest whether `manifest.json` describes the results
 * @throws {ClientDisconnectedError} when the client disconnects
 */
export async function sendArchive(
  res: Response,
  items: readonly ArchiveItem[],
  disk: DiskAccount,
  manifest: boolean,
): Promise<void> {
  const entries = await nameEntries(items);
  const lists = [
    { name: 'errors.json', list: describeErrors(items) },
    { name: 'manifest.json', list: manifest ? await describeResults(items, entries) : [] },
  ].filter(({ list }) => list.length > 0);
  res.setHeader('Content-Type', 'application/zip');
  res.setHeader('Content-Disposition', 'attachment; filename=converted.zip');
  res.setHeader('Cache-Control', 'no-store');
  const canCompress = entries.some(({ converted }) => !OUTPUTS[converted.format].compressed);
  const isCompressed = canCompress && compressedArchives < MAX_COMPRESSED_ARCHIVES;
  const archive = new ZipArchive({ zlib: { level: isCompressed ? DEFLATE_LEVEL : 0 } });
  disk.registerResponse(pendingResponse(res));
  const sending = pipeline(archive, res);
  sending.catch(() => {}); // awaited below, but may reject earlier
  compressedArchives += Number(isCompressed);
  try {
    const lastUses = new Map(entries.map((entry) => [entry.converted.path, entry]));
    for (const entry of entries) {
      await addEntry(archive, entry, res, sending);
      const { path, bytes } = entry.converted;
      if (lastUses.get(path) !== entry) continue; // identical files share a result
      await rm(path);
      disk.release(bytes);
    }
    for (const { name, list } of lists)
      archive.append(`${JSON.stringify(list, null, 2)}\n`, { name, store: true });
    await Promise.all([archive.finalize(), sending]);
  } catch (cause) {
    archive.destroy();
    await sending.catch(() => {});
    throw toSendError(cause);
  } finally {
    compressedArchives -= Number(isCompressed);
  }
}

/** Adds a result to an archive, and resolves when it is no longer in memory. */
async function addEntry(
  archive: ZipArchive,
  { name, converted: { path, bytes, format } }: Entry,
  res: Response,
  sending: Promise<void>,
): Promise<void> {
  using memory = OUTPUTS[format].compressed && bytes <= MAX_STORED_BYTES ? holdInMemory(bytes) : undefined;
  const source = memory ? await readFile(path) : createReadStream(path);
  try {
    const added = once(archive, 'entry');
    archive.append(source, { name, store: memory !== undefined });
    await Promise.race([added, sending]);
    await setImmediate(); // until the streams of archiver have passed the entry on
    while (res.writableNeedDrain) await Promise.race([once(res, 'drain'), sending]);
  } finally {
    if (!Buffer.isBuffer(source)) source.destroy();
  }
}

/** Names the results after their files, in order. A folder and a result cannot have one name. */
async function nameEntries(items: readonly ArchiveItem[]): Promise<Entry[]> {
  const folders: (readonly string[])[] = [];
  for (const { archiveFolder } of items) {
    folders.push(portableFolders(archiveFolder));
    if (archiveFolder) await setImmediate(); // a path of 1024 bytes can have 512 folders, which take 4 ms
  }
  const uniqueName = createUniqueNamer(new Set(folders.flat()));
  return items.flatMap((item, at) => {
    const { outcome } = item;
    if ('error' in outcome) return [];
    const { converted, variant } = outcome;
    const base = [folders[at]?.at(-1) ?? [], portableName(baseNameOf(item.name))].flat().join('/');
    return { item, name: uniqueName(variant ? `${base}-${variant}` : base, converted.format), converted };
  });
}

/** Returns the paths of a folder and of those around it, outermost first, named like results. */
function portableFolders(folder = ''): string[] {
  const names = folder.split('/').filter((name) => name !== '' && name !== '.');
  // A folder has no extension that `baseNameOf` could remove.
  const portable = names.map((name) => portableName(baseNameOf(`${name}.x`)));
  return portable.map((_, at) => portable.slice(0, at + 1).join('/'));
}

/** Returns the content of `errors.json`: the failed conversions. */
function describeErrors(items: readonly ArchiveItem[]): object[] {
  return items.flatMap(({ index, name = null, outcome }) =>
    'error' in outcome ? [{ index, file: name, variant: outcome.variant, ...errorBody(outcome.error) }] : [],
  );
}

/** Returns the content of `manifest.json`: the results, and the variants that failed. */
async function describeResults(items: readonly ArchiveItem[], entries: readonly Entry[]): Promise<object[]> {
  const list: object[] = [];
  const digests = new Map<string, string>();
  const entryOf = new Map(entries.map((entry) => [entry.item, entry]));
  for (const item of items) {
    const { index, name: source = null, outcome } = item;
    const { variant } = outcome;
    const entry = entryOf.get(item);
    if (entry) {
      const { path, format: type, width, height, bytes, notes } = entry.converted;
      const metadata = describeKinds(entry.converted);
      const sha256 = digests.get(path) ?? (await hashFile(path));
      digests.set(path, sha256);
      const named = { index, source, variant, name: entry.name, type };
      list.push({ ...named, width, height, bytes, sha256, notes, metadata });
    } else if ('error' in outcome && variant) {
      list.push({ index, source, variant, ...errorBody(outcome.error) });
    }
  }
  return list;
}
