/** @module Notes of a result that are known only after the tools have run. */
import { ALL_INPUT_TYPES, type InputType } from '../../formats.ts';
import type { Output } from '../../process/command.ts';
import { inspect } from '../inspect/index.ts';
import type { ImageInfo } from '../plan/image-info.ts';
import type { ConvertOptions, Note } from '../plan/types.ts';
import { hasProfileError, trustedMessagesIn } from './tool-errors.ts';

/** Line that a plan makes ImageMagick print for an image with transparency. */
const TRANSPARENT = /^opaque: false/im;
/** Line that a plan makes ImageMagick print for an image with partial transparency: a number above 0. */
const HALF_TRANSPARENT = /^half transparent: (?!0(?:\.0*)?$)\d/im;
/** ImageMagick's warnings about a JPEG that ends early. */
const TRUNCATED =
  /^(?:Premature end of JPEG file|Corrupt JPEG data: (?:premature|bad Huffman).*) .* @ warning\/jpeg\.c\//;

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
 * Returns whether the result has all metadata that it should keep.
 *
 * @param result path of the result
 */
export async function keptMetadata(
  { metadata = [] }: ImageInfo,
  result: string,
  { format, stripMetadata }: ConvertOptions,
): Promise<boolean> {
  if (stripMetadata || metadata.length === 0) return true;
  const type = ALL_INPUT_TYPES.find((input: InputType) => input === format);
  const kept = type ? (await inspect(result, type)).metadata : [];
  return metadata.every((kind) => kept?.includes(kind));
}
