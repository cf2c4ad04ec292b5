/** @module Converts files of the list, one request for each. */
import { batch, signal as signalOf } from '@preact/signals';
import {
  type Result as ClientResult,
  type ConvertOptions,
  ImagemillError,
} from '../../client/library/index.ts';
import {
  describeDisabled,
  EXTRA_INPUT_TYPES,
  INPUTS,
  OUTPUTS,
  type OutputFormat,
} from '../../tables/formats.ts';
import { connect } from '../client/api.ts';
import { loadPreview } from '../client/preview.ts';
import { queued } from '../client/queue.ts';
import { formatExcess, formatSwitchedOff } from '../format.ts';
import { finish } from '../state/candidates.ts';
import { announcement, type Failure, forgetResult, type Item, queryOf, type Result } from '../state/items.ts';
import { watermarkOf } from '../state/watermark.ts';

/** Fields of which one must change before a file can succeed, by the reason; any by default. */
const NEEDED_CHANGES: Readonly<Partial<Record<NonNullable<ImagemillError['reason']>, readonly string[]>>> = {
  corrupt_image: [],
  empty_file: [],
  file_encrypted: [],
  file_too_large: [],
  proxy_413: [],
  unsupported_encoding: [],
  unsupported_type: [],
  too_many_frames: ['preset', 'output_format', 'frames', 'pages'],
  // Those of a drawing or a page depend on the size of the result.
  too_many_pixels: [
    'preset',
    'output_format',
    'rotate',
    'crop',
    'trim',
    'width',
    'height',
    'scale',
    'fit',
    'pages',
    'dpi',
  ],
};

export const convert = (items: readonly Item[]): void =>
  batch(() => {
    for (const item of items) convertOne(item);
  });

async function convertOne(item: Item): Promise<void> {
  const { file, state } = item;
  const query = queryOf(item);
  const controller = new AbortController();
  const cancel = () => controller.abort();
  forgetResult(state.value);
  state.value = { at: 'waiting', cancel };
  try {
    const result = await queued((signal) => {
      state.value = { at: 'uploading', cancel, share: 0 };
      const onUpload = (share: number) => {
        state.value = share < 1 ? { at: 'uploading', cancel, share } : { at: 'converting', cancel };
      };
      return requestResult(item, query, signal, onUpload).catch((error) => {
        state.value = { at: 'waiting', cancel };
        throw error;
      });
    }, controller.signal);
    finish(item, query, result);
  } catch (error) {
    const failure = await describeFailure(error, file);
    if (controller.signal.aborted) {
      state.value = { at: 'ready' };
    } else {
      state.value = { at: 'failed', query, ...failure };
      announcement.value = `${file.name}: ${failure.message}`;
    }
  }
}

/**
 * Converts a file.
 *
 * @throws {DOMException} if the file was changed, moved or deleted
 */
export async function requestResult(
  { file, preview }: Item,
  query: string,
  signal: AbortSignal,
  onUpload: (share: number) => void = () => {},
): Promise<Result> {
  await checkReadable(file);
  const answer = await connect(onUpload).convert(file, toOptions(query), { signal });
  return toResult(answer, file.name, Boolean(preview.value?.thumbnail));
}

/** Returns the options of a query, with the watermark. */
export function toOptions(query: string): ConvertOptions {
  const { watermark = '', ...fields } = Object.fromEntries(new URLSearchParams(query));
  return { ...fields, watermark: watermarkOf(watermark) } as ConvertOptions;
}

/**
 * Checks that a file can be read. Firefox would never end a request with one that it cannot read.
 *
 * @throws {DOMException} if the file was changed, moved or deleted
 */
export const checkReadable = async (file: File): Promise<void> => void (await file.slice(0, 1).arrayBuffer());

/**
 * Reads what the server has returned for a file with this name.
 *
 * @param isShown whether the file has a thumbnail. Then the result needs none, and is not decoded
 *   to show the list.
 */
export async function toResult(answer: ClientResult, fileName: string, isShown = false): Promise<Result> {
  const { type, width = 0, height = 0, notes, removed, kept, quality, response } = answer;
  const blob = await response.blob();
  const isImage = type.startsWith('image/');
  const isKnown = isShown && width > 0;
  const preview: Result['preview'] = signalOf(isImage ? (isKnown ? { width, height } : undefined) : null);
  if (isImage && !isKnown) loadPreview(preview, blob);
  const [extension, { label }] =
    RESULTS.find(([, { mediaType }]) => mediaType === type) ?? (['webp', OUTPUTS.webp] as const);
  const name = resultName(fileName, extension);
  return { blob, url: URL.createObjectURL(blob), name, label, notes, removed, kept, quality, preview };
}

/** Returns the message of a failed request. An unreadable file looks like a lost connection. */
export async function describeFailure(error: unknown, file: File): Promise<Failure> {
  if (error instanceof ImagemillError) {
    const neededChanges = error.reason && NEEDED_CHANGES[error.reason];
    return { message: formatError(error), canRetry: isTemporary(error.status), neededChanges };
  }
  try {
    await checkReadable(file);
    return { message: (error as Error).message, canRetry: true };
  } catch {
    return {
      message: 'The file was changed, moved or deleted. Add it again.',
      canRetry: false,
      neededChanges: [],
    };
  }
}

/** Returns whether a request may succeed later: timeout, rate limit, or failure of the server. */
const isTemporary = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Returns an error's message without settings, fields and formats: the page has none of them. */
function formatError(error: ImagemillError): string {
  const { status, details } = error;
  if (!details)
    return error.reason === 'proxy_413' ? error.message : `The server responded with status ${status}.`;
  const { message, reason, actual, limit, setting, field } = details;
  if (reason === 'too_many_pixels')
    return formatExcess(Number(actual), Number(limit), ['pixels', 'megapixels']);
  // The name of a file may have the extension of another format.
  const disabled = EXTRA_INPUT_TYPES.map((type) => INPUTS[type].label).find((label) =>
    message.includes(describeDisabled('EXTRA_INPUTS', label)),
  );
  if (disabled) return formatSwitchedOff(disabled);
  // The page names the formats where files are dropped.
  const sentence = message.replace(reason === 'unsupported_type' ? / \(.*?\)/ : ` (${setting ?? field})`, '');
  if (!setting || limit === undefined) return sentence;
  return `${sentence} The operator can raise this limit.`;
}

/** The archive of several results of a file: those of a preset, or its pages. */
const ARCHIVE = { mediaType: 'application/zip', label: 'ZIP' };
/** Types of results, by their extensions. */
const RESULTS = Object.entries<Pick<OutputFormat, 'mediaType' | 'label'>>({ ...OUTPUTS, zip: ARCHIVE });

/** Returns the file name of a result. */
export const resultName = (name: string, extension: string): string =>
  `${name.replace(/(?<=.)\.[^.]*$/su, '')}.${extension}`;

/** Returns whether a result is an archive of several files. */
export const isArchive = (blob: Blob): boolean => blob.type === ARCHIVE.mediaType;

/** Returns whether a result is a PDF, the only output that `<img>` cannot show. */
export const isPdf = (blob: Blob): boolean => blob.type === OUTPUTS.pdf.mediaType;
