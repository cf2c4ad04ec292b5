/** @module Makes one file of all files of the list. */
import { plural } from '../../base/text.ts';
import {
  type BatchOptions,
  type Result as ClientResult,
  ImagemillError,
} from '../../client/library/index.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { connect } from '../client/api.ts';
import { queued } from '../client/queue.ts';
import {
  type Combination,
  combinable,
  combination,
  DEFAULT_NAME,
  forgetCombination,
  isCombining,
  nameOfCombined,
  type Part,
  plan,
} from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import { announcement, forgetResult, type Item, queryOf } from '../state/items.ts';
import { checkReadable, describeFailure, isArchive, toOptions, toResult } from './convert-files.ts';
import { countPages } from './count-pages.ts';

/** The error of one of the files, before they are combined. */
class FileError extends Error {
  readonly item: Item;
  constructor(item: Item, cause: unknown) {
    super('', { cause });
    this.item = item;
  }
}

/** A file as it is sent, with the notes of the conversion before. */
interface Prepared {
  readonly item: Item;
  readonly file: File;
  readonly notes: readonly Note[];
  /** Number of its images: more than one for an archive of pages. */
  readonly images: number;
}

/** Makes one file of all files, in their order. A failed one has the error, and so has the bar. */
export async function combine(): Promise<void> {
  if (isCombining.peek()) return;
  const { key, parts, query } = plan.peek();
  const controller = new AbortController();
  let isCancelled = false;
  const cancel = (): void => {
    isCancelled = true;
    controller.abort();
  };
  forgetCombination();
  for (const { state } of combinable.peek()) if (state.peek().at === 'failed') state.value = { at: 'ready' };
  const excess = findExcess(parts.length);
  if (excess) {
    fail(key, excess);
    return;
  }
  let sent = parts.map(({ item }) => item);
  try {
    const files = await prepareAll(parts, controller.signal, cancel);
    sent = itemsOf(files);
    const answer = await send(files, query, controller.signal, cancel);
    const result = await toCombination(answer, files);
    combination.value = { at: 'done', key, result };
    announcement.value = `${nameOfCombined(result)} is ready: ${result.pages}.`;
  } catch (error) {
    controller.abort(); // what is still in progress for other files
    if (isCancelled) combination.value = { at: 'ready' };
    else fail(key, await explain(error, sent));
  }
}

/** Returns why the server would reject this number of files; undefined if it would not. */
function findExcess(count: number): string | undefined {
  const max = formats.value?.limits.max_batch_files ?? Number.POSITIVE_INFINITY;
  return count > max
    ? `This server makes one file of up to ${max} files. Its operator can raise it.`
    : undefined;
}

/** Prepares the files, and shows the progress of those that are converted singly before. */
async function prepareAll(parts: readonly Part[], signal: AbortSignal, cancel: () => void) {
  const count = parts.filter(({ query }) => query !== undefined).length;
  let prepared = 0;
  const showProgress = (): void => {
    combination.value =
      prepared < count ? { at: 'preparing', cancel, prepared, count } : { at: 'waiting', cancel };
  };
  showProgress();
  return Promise.all(
    parts.map(async ({ item, query }) => {
      const file = await prepare(item, query, signal).catch((error) => {
        throw new FileError(item, error);
      });
      if (query !== undefined) prepared += 1;
      if (!signal.aborted) showProgress();
      return file;
    }),
  );
}

async function prepare(item: Item, query: string | undefined, signal: AbortSignal): Promise<Prepared> {
  const { file } = item;
  await checkReadable(file);
  if (query === undefined) return { item, file, notes: [], images: 1 };
  return queued(async () => {
    const { notes, response } = await connect().convert(file, toOptions(query), { signal });
    const blob = await response.blob();
    const images = isArchive(blob) ? await countEntries(blob) : 1;
    return { item, file: new File([blob], file.name), notes, images };
  }, signal);
}

/** Bytes of the end of a ZIP archive without a comment, and where it has the number of entries. */
const [ZIP_END_BYTES, ENTRIES_AT] = [22, 10];

const countEntries = async (archive: Blob): Promise<number> =>
  new DataView(await archive.slice(-ZIP_END_BYTES).arrayBuffer()).getUint16(ENTRIES_AT, true);

/** Returns the item of each image that is sent, which is what the positions of a response count. */
const itemsOf = (files: readonly Prepared[]): Item[] =>
  files.flatMap(({ item, images }) => Array.from({ length: images }, () => item));

/** Sends the files, and shows the progress. */
function send(files: readonly Prepared[], query: string, signal: AbortSignal, cancel: () => void) {
  const onUpload = (share: number): void => {
    combination.value = share < 1 ? { at: 'uploading', cancel, share } : { at: 'converting', cancel };
  };
  return queued(async () => {
    onUpload(0);
    try {
      return await connect(onUpload).batch(
        files.map(({ file }) => file),
        toOptions(query) as BatchOptions,
        { signal },
      );
    } catch (error) {
      combination.value = { at: 'waiting', cancel };
      throw error;
    }
  }, signal);
}

/** Notes of a response, each with the positions of its files, unless these are more than 100. */
const NOTE = /(?<=^|, )([a-z-]+)(?:;files="([\d ]+)")?/g;

async function toCombination(answer: ClientResult, files: readonly Prepared[]): Promise<Combination> {
  const notes = [...(answer.response.headers.get('x-conversion-notes') ?? '').matchAll(NOTE)].map(
    ([, note, positions]) => ({ note: note as Note, positions: positions?.split(' ').map(Number) }),
  );
  const result = await toResult(answer, DEFAULT_NAME);
  const sent = itemsOf(files);
  return {
    ...result,
    notes: notes.filter(({ positions }) => !positions).map(({ note }) => note),
    pages: await describePages(result.blob, sent.length),
    fileNotes: new Map(
      files.map(({ item, notes: own }) => {
        const found = notes.filter(({ positions }) => positions?.some((at) => sent[at] === item));
        return [item, [...new Set([...own, ...found.map(({ note }) => note)])]];
      }),
    ),
  };
}

/** Returns the number of pages or frames. An animation has one frame for each image. */
async function describePages(blob: Blob, images: number): Promise<string> {
  const hasPages = Object.values(OUTPUTS).some(({ mediaType, pages }) => pages && mediaType === blob.type);
  return hasPages ? plural(await countPages(blob), 'page') : plural(images, 'frame');
}

function fail(key: string, message: string): void {
  combination.value = { at: 'failed', key, message };
  announcement.value = message;
}

/** Returns the message of an error, and stores it in the row of its file, if it concerns one. */
async function explain(error: unknown, items: readonly Item[]): Promise<string> {
  const isOfFile = error instanceof FileError;
  const position = error instanceof ImagemillError ? error.details?.file?.index : undefined;
  const item = isOfFile ? error.item : position === undefined ? await findUnreadable(items) : items[position];
  const failure = await describeFailure(isOfFile ? error.cause : error, item?.file ?? new File([], ''));
  if (item) {
    forgetResult(item.state.peek());
    item.state.value = { at: 'failed', query: queryOf(item), ...failure };
  }
  // The message of a batch names the file.
  return item && position === undefined ? `${item.file.name}: ${failure.message}` : failure.message;
}

/** Returns the first item whose file was changed, moved or deleted. */
async function findUnreadable(items: readonly Item[]): Promise<Item | undefined> {
  for (const item of items) {
    const isReadable = await checkReadable(item.file).then(
      () => true,
      () => false,
    );
    if (!isReadable) return item;
  }
  return undefined;
}
