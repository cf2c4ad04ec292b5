import { ALL_INPUT_TYPES, type InputType } from '../../formats.ts';
import type { Output } from '../../process/command.ts';
import { inspect } from '../inspect/index.ts';
import type { ConvertOptions, ImageInfo, Note } from '../plan/types.ts';
import { hasProfileTrouble } from './tool-errors.ts';
import { trustedMessagesIn } from './tool-messages.ts';

/** What is told of a result besides the plan's own notes: what the tools said, and what is in it. */

/** What a plan has ImageMagick print of a picture with transparency. */
const TRANSPARENT = /^opaque: false/im;
/** ImageMagick's warnings of a JPEG that ends early. */
const TRUNCATED =
  /^(?:Premature end of JPEG file|Corrupt JPEG data: (?:premature|bad Huffman).*) .* @ warning\/jpeg\.c\//;

/**
 * The notes of a result, from its plan and from what the tools printed although they succeeded.
 *
 * A profile that the tool complained of was not used, so that nothing was converted by it.
 *
 * @param kept whether all metadata that was to be kept is in the result
 * @param lowered whether the quality is lower than the one that was asked for
 */
export function notesIn(
  planned: readonly Note[],
  { stdout, stderr }: Output,
  { kept, lowered }: { readonly kept: boolean; readonly lowered: boolean },
): Note[] {
  const isTruncated = trustedMessagesIn(stderr).some((message) => TRUNCATED.test(message));
  const done = hasProfileTrouble(stderr)
    ? planned.filter((note) => note !== 'colour-converted-to-srgb')
    : planned;
  return [
    ...done,
    ...(TRANSPARENT.test(stdout) ? (['alpha-flattened'] as const) : []),
    ...(isTruncated ? (['truncated-input'] as const) : []),
    ...(kept ? [] : (['metadata-partly-kept'] as const)),
    ...(lowered ? (['quality-lowered'] as const) : []),
  ];
}

/** Whether the result has every kind of metadata that the picture had, or none was to be kept. */
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
