/** @module Verifies the file that the tools have written, and collects the notes of a result from their output. */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { workFiles } from '../../files/work-files.ts';
import { ALL_INPUT_TYPES, hasSignature, type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import type { ImageInfo } from '../../images/image-info.ts';
import { inspect } from '../../images/index.ts';
import type { Note } from '../../notes.ts';
import type { Output } from '../../process/command.ts';
import { hashFile } from '../key.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  INPUT_FILE,
  outputStem,
  RESTORED_FILE,
} from '../plan/types.ts';
import { hasProfileError, invalidOutputError, trustedMessagesIn } from './tool-errors.ts';

/** Conversion that has written an output. */
interface OutputContext {
  /** Folder of the conversion. */
  readonly folder: string;
  readonly type: InputType;
  /** Name of the input in messages. */
  readonly label: string;
}

/** Valid output of a conversion. */
export interface VerifiedOutput {
  readonly path: string;
  readonly bytes: number;
}

/**
 * Moves the result out of the folder and verifies it. A valid result is a single file with the expected name and the
 * signature of its format.
 *
 * The result is moved because a tool could replace a file in its folder after the check. No tool can access a path
 * beside the folder, so the file need not stay open until it is sent. A large batch would need too many descriptors.
 *
 * @throws {ServiceError} CORRUPT_IMAGE, if there is no valid result; removes an invalid one
 */
export async function verifyOutput(source: OutputContext, job: ConversionJob): Promise<VerifiedOutput> {
  const { options, output, suffix } = job;
  const outputs = readdirSync(source.folder).filter((name) => name.startsWith(outputStem(suffix)));
  if (outputs.length !== 1 || outputs[0] !== output) {
    throw invalidOutputError(
      `expected ${output}, found ${outputs.length} files: ${outputs.slice(0, 3)}`,
      source,
    );
  }
  const format = OUTPUTS[options.format];
  // With maxBytes, several results can exist at the same time.
  const encode = options.maxBytes === undefined ? '' : `.q${options.quality}`;
  const path = `${source.folder}${suffix && `.${suffix}`}${encode}.${format.extension}`;
  await workFiles(path).rename(join(source.folder, output), path);
  try {
    const bytes = checkedSize(path, format);
    if (bytes !== undefined) return { path, bytes };
  } catch (error) {
    if (!isNoFile(error)) throw error;
  }
  await workFiles(path).rm(path, { recursive: true, force: true });
  throw invalidOutputError(`${output} is not a file that starts like ${options.format}`, source);
}

/**
 * Returns the size of a file in bytes. Synchronous: the file is in the page cache, because it has just been written.
 *
 * @returns undefined if it is not a regular file with the signature of the format, or has other hard links
 */
function checkedSize(path: string, format: (typeof OUTPUTS)['webp']): number | undefined {
  // Does not follow a link, and does not wait for the writer of a pipe.
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const info = fstatSync(file);
    if (!info.isFile() || info.nlink > 1) return undefined;
    const head = Buffer.alloc(16);
    const length = readSync(file, head, 0, head.length, 0);
    return hasSignature(format, head.subarray(0, length)) ? info.size : undefined;
  } finally {
    closeSync(file);
  }
}

/** Errors of open(2) and read(2) if the path is missing, or is a link, a pipe, a socket or a folder. */
const NO_FILE = ['ENOENT', 'ELOOP', 'ESPIPE', 'ENXIO', 'EISDIR'];

/** Returns whether an error means that a tool has not written the expected file. */
export function isNoFile(error: unknown): boolean {
  return NO_FILE.includes((error as NodeJS.ErrnoException).code ?? '');
}

/** Line that a plan makes ImageMagick print for an image with transparency. */
const TRANSPARENT = /^opaque: false/im;
/** Line that a plan makes ImageMagick print for an image with partial transparency: a number above 0. */
const HALF_TRANSPARENT = /^half transparent: (?!0(?:\.0*)?$)\d/im;
/** ImageMagick's warnings about a JPEG that ends early. */
const TRUNCATED =
  /^(?:Premature end of JPEG file|Corrupt JPEG data: (?:premature|bad Huffman)) .* @ warning\/jpeg\.c\//;

/** Line that a plan makes ImageMagick print for an animation: the number of frames that it has read. */
const FRAMES_READ = /^frames: (\d+)$/m;

/**
 * Checks that ImageMagick has read all frames of an animation, if it has printed how many.
 *
 * @throws {ServiceError} CORRUPT_IMAGE
 */
export function assertAllFramesRead({ animation }: ImageInfo, stdout: string, source: OutputContext): void {
  const read = FRAMES_READ.exec(stdout)?.[1];
  const expected = animation?.delaysMs.length;
  if (read !== undefined && Number(read) !== expected)
    throw invalidOutputError(`${read} of ${expected} frames were read`, source);
}

/**
 * Collects the notes of a result, from its plan and from the output of the tools that succeeded.
 *
 * If a tool reported an error in the colour profile, it did not use it, and the colours were not converted.
 *
 * @param kept whether the result has all metadata that it should keep
 * @param lowered whether the quality is lower than requested
 */
export function collectNotes(
  planned: readonly Note[],
  { stdout, stderr }: Output,
  { kept, lowered }: { readonly kept: boolean; readonly lowered: boolean },
): Note[] {
  const isTruncated = trustedMessagesIn(stderr).some((message) => TRUNCATED.test(message));
  const done = hasProfileError(stderr)
    ? planned.filter((note) => note !== 'colour-converted-to-srgb')
    : planned;
  return [
    ...done,
    ...(TRANSPARENT.test(stdout) ? (['alpha-flattened'] as const) : []),
    ...(HALF_TRANSPARENT.test(stdout) ? (['partial-alpha-lost'] as const) : []),
    ...(isTruncated ? (['truncated-input'] as const) : []),
    ...(kept ? [] : (['metadata-partly-kept'] as const)),
    ...(lowered ? (['quality-lowered'] as const) : []),
  ];
}

/**
 * Checks that djxl has restored the bytes of a JPEG.
 *
 * @throws {ServiceError} CORRUPT_IMAGE
 */
export async function assertRestored(source: OutputContext): Promise<void> {
  const files = [INPUT_FILE, RESTORED_FILE].map((name) => hashFile(join(source.folder, name)));
  const [original, restored] = await Promise.all(files).catch((error) => {
    if (isNoFile(error)) return [];
    throw error;
  });
  if (original === undefined || original !== restored)
    throw invalidOutputError('djxl does not restore the bytes of the JPEG', source);
}

/** Reads the properties of a result from its header. A PDF has none. */
export async function inspectResult(path: string, format: OutputType): Promise<ImageInfo | undefined> {
  const type = ALL_INPUT_TYPES.find((input: InputType) => input === format);
  return type && inspect(path, type);
}

/** Returns whether the result has all metadata that it should keep. */
export function keptMetadata(
  { metadata = [] }: ImageInfo,
  result: ImageInfo | undefined,
  { stripMetadata }: ConvertOptions,
): boolean {
  return stripMetadata || metadata.every((kind) => result?.metadata?.includes(kind));
}
