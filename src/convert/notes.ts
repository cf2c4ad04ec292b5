import { INPUT_TYPES, type InputType } from '../formats.ts';
import { PROFILE_TROUBLE } from './failure.ts';
import { readHeader } from './header/header.ts';
import type { ConvertOptions, Note, Picture } from './plan/types.ts';

/** What is told of a result besides the plan's own notes: what the tools said, and what is in it. */

/** Signs in what the tools print although they succeed. */
const SIGNS: readonly { readonly sign: RegExp; readonly note: Note }[] = [
  { sign: /^opaque: false/im, note: 'alpha-flattened' },
  {
    sign: /Premature end of JPEG file|Corrupt JPEG data: (?:premature|bad Huffman)/,
    note: 'truncated-input',
  },
];

/**
 * A profile that the tool complained of was not used, so that nothing was converted by it.
 *
 * @param kept whether all metadata that was to be kept is in the result
 */
export function notesIn(planned: readonly Note[], printed: string, kept: boolean): Note[] {
  const seen = SIGNS.filter(({ sign }) => sign.test(printed)).map(({ note }) => note);
  const done = PROFILE_TROUBLE.test(printed)
    ? planned.filter((note) => note !== 'colour-converted-to-srgb')
    : planned;
  return [...done, ...seen, ...(kept ? [] : (['metadata-partly-kept'] as const))];
}

/** Whether the result has every kind of metadata that the picture had, or none was to be kept. */
export async function keptMetadata(
  { metadata = [] }: Picture,
  result: string,
  { format, stripMetadata }: ConvertOptions,
): Promise<boolean> {
  if (stripMetadata || metadata.length === 0) return true;
  const type = INPUT_TYPES.find((input: InputType) => input === format);
  const kept = type ? (await readHeader(result, type)).metadata : [];
  return metadata.every((kind) => kept?.includes(kind));
}
