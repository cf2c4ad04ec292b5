/** @module Checks the file that tools have written, corrects its metadata, and collects notes. */
import { closeSync, constants, fstatSync, opendirSync, openSync, readSync } from 'node:fs';
import { join, parse } from 'node:path';
import { hashFile } from '../../files/system.ts';
import { isNearlyFull, workFiles } from '../../files/workspace.ts';
import { editFile } from '../../images/containers/file.ts';
import { writeCopyright } from '../../images/copyright/write.ts';
import { TIFF_HEADERS, withoutMarker } from '../../images/exif.ts';
import type { ImageInfo } from '../../images/image-info.ts';
import { inspect } from '../../images/index.ts';
import { type JxlMetadata, jxlMetadataEdits } from '../../images/jxl.ts';
import { type PngMetadata, pngMetadataEdits, readPngMetadata } from '../../images/png/png-text.ts';
import { readRevealedKinds } from '../../images/revealed/read-revealed.ts';
import type { Output } from '../../process/command.ts';
import { serviceError } from '../../tables/errors.ts';
import {
  ALL_INPUT_TYPES,
  type InputType,
  OUTPUTS,
  type OutputFormat,
  type OutputType,
} from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import type { ConversionInput, ConversionResult } from '../context.ts';
import { FILE_TO_ENCODE, nameFile } from '../plan/step.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  INPUT_FILE,
  type PlannedJob,
  RESTORED_FILE,
} from '../plan/types.ts';
import { invalidOutputError, isNoFile, warningsIn } from './tool-errors.ts';
import { writeDocument } from './write-document.ts';

type OutputContext = Pick<ConversionInput, 'folder' | 'type' | 'label'>;

/** Valid output of a conversion. */
export interface CheckedResult {
  readonly path: string;
  readonly bytes: number;
}

/**
 * Checks the result, and completes its metadata, by what the commands have printed.
 *
 * @throws {ServiceError} CORRUPT_IMAGE, if there is no valid result; removes an invalid one
 */
export async function checkResult(
  source: OutputContext,
  job: ConversionJob & Partial<PlannedJob>,
  stdout: string,
): Promise<CheckedResult> {
  const { image, options, suffix } = job;
  assertAllFramesRead(image, stdout, source);
  if (job.isTranscoded) await assertRestored(source);
  const { plan } = job;
  if (plan?.document) {
    const path = resultPath(source, job);
    return { path, bytes: await writeDocument(path, { source, job, plan: plan.document, printed: stdout }) };
  }
  const moved = await moveOutput(source, job);
  if (!OUTPUTS[options.format].ending && (await isNearlyFull(source.folder))) throw serviceError('DISK_FULL');
  const encoded = join(source.folder, nameFile(FILE_TO_ENCODE, suffix));
  const losesMetadata = job.programs.includes('pngquant') && options.metadata !== 'none';
  const checked = losesMetadata ? await copyMetadata(encoded, moved) : moved;
  if (options.metadata === 'copyright')
    return { ...checked, bytes: await writeCopyright(checked, options.format, image.copyright) };
  if (options.format !== 'jxl' || options.metadata === 'none' || job.isTranscoded) return checked;
  return addJxlMetadata(checked, encoded);
}

/**
 * Moves the result, a single file with the expected name and signature, out of the folder, where a
 * tool could replace it after the check. No tool can access a path beside the folder, so the file
 * need not stay open until it is sent: a large batch would need too many descriptors.
 */
async function moveOutput(source: OutputContext, job: ConversionJob): Promise<CheckedResult> {
  const { options, suffix } = job;
  const output = nameFile(job.output, suffix);
  const outputs = await findOutputs(source.folder, parse(output).name);
  if (outputs.length !== 1 || outputs[0] !== output)
    throw invalidOutputError(`expected ${output}, found: ${outputs.join(', ') || 'no file'}`, source);
  const path = resultPath(source, job);
  const bytes = await takeResult(join(source.folder, output), path, options.format);
  if (bytes !== undefined) return { path, bytes };
  throw invalidOutputError(`${output} is not a complete file that starts like ${options.format}`, source);
}

/** Moves a tool's file out of its reach. Returns its bytes; removes a file of another format. */
export async function takeResult(
  from: string,
  path: string,
  format: OutputType,
): Promise<number | undefined> {
  try {
    await workFiles(path).rename(from, path);
    const bytes = checkedSize(path, OUTPUTS[format]);
    if (bytes !== undefined) return bytes;
  } catch (error) {
    if (!isNoFile(error)) throw error;
  }
  await workFiles(path).rm(path, { recursive: true, force: true });
  return undefined;
}

/** Returns the path of a result beside the folder, where no tool can change it. */
function resultPath({ folder }: OutputContext, { options, suffix, search }: ConversionJob): string {
  // Several results can exist at the same time.
  const encode = search || options.candidates ? `.q${options.quality}` : '';
  return `${folder}${suffix && `.${suffix}`}${encode}.${options.format}`;
}

/** Names read in this thread; others in another, since a hostile tool can write any number. */
const MAX_NAMES_AT_ONCE = 64;
/** Number of outputs after which the search ends. */
const MAX_OUTPUTS = 3;

/** Returns the first names in a folder that start with this text. */
async function findOutputs(folder: string, start: string): Promise<string[]> {
  const entries = opendirSync(folder);
  const outputs: string[] = [];
  try {
    for (let count = 0; outputs.length < MAX_OUTPUTS; count += 1) {
      const entry = count < MAX_NAMES_AT_ONCE ? entries.readSync() : await entries.read();
      if (!entry) break;
      if (entry.name.startsWith(start)) outputs.push(entry.name);
    }
  } finally {
    entries.closeSync();
  }
  return outputs;
}

/**
 * Returns the size of a regular file without other hard links that starts and ends like its format.
 * Synchronous: it has just been written, so it is in the page cache.
 */
function checkedSize(path: string, { signature, ending = [] }: OutputFormat): number | undefined {
  // Does not follow a link, and does not wait for the writer of a pipe.
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const hasAt = (expected: readonly (number | undefined)[], position: number): boolean => {
    const bytes = Buffer.alloc(expected.length);
    return (
      position >= 0 &&
      readSync(file, bytes, 0, bytes.length, position) === bytes.length &&
      expected.every((byte, at) => byte === undefined || bytes[at] === byte)
    );
  };
  try {
    const info = fstatSync(file);
    if (!info.isFile() || info.nlink > 1) return undefined;
    // ImageMagick 7 reports success although the disk had no space for the end of a file.
    return hasAt(signature, 0) && hasAt(ending, info.size - ending.length) ? info.size : undefined;
  } finally {
    closeSync(file);
  }
}

/** Line that a plan makes ImageMagick print for an image with transparency. */
const TRANSPARENT = /^opaque: false/im;
/** Line about partial transparency that a plan makes ImageMagick print: a number above 0. */
const HALF_TRANSPARENT = /^half transparent: (?!0(?:\.0*)?$)\d/im;

/** Line that ImageMagick prints for an animation: the number of frames that it has read. */
const FRAMES_READ = /^frames: (\d+)$/m;

/** Checks that ImageMagick has read all frames of an animation, if it has printed how many. */
function assertAllFramesRead({ animation }: ImageInfo, stdout: string, source: OutputContext): void {
  const read = FRAMES_READ.exec(stdout)?.[1];
  const expected = animation?.delaysMs.length;
  if (read !== undefined && Number(read) !== expected)
    throw invalidOutputError(`${read} of ${expected} frames were read`, source);
}

/**
 * Collects the notes of the plan, of the output of tools that succeeded, and others. A tool that
 * reports an error in the profile has not converted colours. `kept`: whether no metadata is
 * missing.
 */
export function collectNotes(
  planned: readonly Note[],
  { stdout, stderr }: Output,
  { kept, others }: { readonly kept: boolean; readonly others: readonly Note[] },
): Note[] {
  const warnings = stderr === '' ? undefined : warningsIn(stderr);
  const done = warnings?.hasProfileError
    ? planned.filter((note) => note !== 'colour-converted-to-srgb')
    : planned;
  return [
    ...done,
    ...(TRANSPARENT.test(stdout) ? (['alpha-flattened'] as const) : []),
    ...(HALF_TRANSPARENT.test(stdout) ? (['partial-alpha-lost'] as const) : []),
    ...(warnings?.isTruncated ? (['truncated-input'] as const) : []),
    ...(kept ? [] : (['metadata-partly-kept'] as const)),
    ...others,
  ];
}

/** Returns an empty list if a tool has not written the expected file. */
function noneIfMissing(error: unknown): never[] {
  if (isNoFile(error)) return [];
  throw error;
}

/** Checks that djxl has restored the bytes of a JPEG. */
async function assertRestored(source: OutputContext): Promise<void> {
  const files = [INPUT_FILE, RESTORED_FILE].map((name) => hashFile(join(source.folder, name)));
  const [original, restored] = await Promise.all(files).catch(noneIfMissing);
  if (original === undefined || original !== restored)
    throw invalidOutputError('djxl does not restore the bytes of the JPEG', source);
}

/** Reads the properties of a result from its header. A PDF has none. */
export async function inspectResult(path: string, format: OutputType): Promise<ImageInfo | undefined> {
  const type = ALL_INPUT_TYPES.find((input: InputType) => input === format);
  return type && inspect(path, type);
}

/** Returns whether a result has all metadata. Its plan states whether it has the copyright. */
export function keptMetadata(
  { metadata = [] }: ImageInfo,
  result: ImageInfo | undefined,
  { metadata: kept }: ConvertOptions,
): boolean {
  return kept !== 'all' || metadata.every((kind) => result?.metadata?.includes(kind));
}

/** Compares what the image and the file of the result give away. Without a file, it is nothing. */
export async function compareRevealed(
  { revealed = [] }: ImageInfo,
  file: { readonly path: string; readonly type: InputType } | undefined,
  { metadata }: ConvertOptions,
): Promise<Pick<ConversionResult, 'removed' | 'kept'>> {
  // A result without metadata need not be read.
  const hasSome = file && metadata !== 'none' && revealed.length > 0;
  const found = hasSome ? await readRevealedKinds(file.path, file.type) : [];
  return {
    removed: revealed.filter((kind) => !found.includes(kind)),
    kept: revealed.filter((kind) => found.includes(kind)),
  };
}

/** Appends the metadata of a PNG to a JPEG XL without it: cjxl 0.7, of Debian 12, drops it. */
async function addJxlMetadata(result: CheckedResult, png: string): Promise<CheckedResult> {
  const found: PngMetadata[] = await readPngMetadata(png).catch(noneIfMissing);
  const metadata: JxlMetadata = Object.assign({}, ...found.reverse().map(jxlMetadataOf));
  const bytes = await editFile(result, (file) => jxlMetadataEdits(file, result.bytes, metadata));
  return { ...result, bytes };
}

/** Copies the profile and metadata of a PNG to its result: pngquant drops them. */
async function copyMetadata(png: string, result: CheckedResult): Promise<CheckedResult> {
  const edits = await pngMetadataEdits(png).catch(noneIfMissing);
  return { ...result, bytes: await editFile(result, () => edits) };
}

/** Returns metadata that a JPEG XL can contain; none if it is invalid. */
function jxlMetadataOf({ kind, bytes }: PngMetadata): JxlMetadata {
  if (kind === 'xmp' && bytes.length > 0) return { xmp: bytes };
  const exif = withoutMarker(bytes);
  return kind === 'exif' && TIFF_HEADERS.includes(exif.toString('latin1', 0, 4)) ? { exif } : {};
}
