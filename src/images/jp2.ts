/** @module Reads the boxes of a JPEG 2000 file (ISO/IEC 15444-1, annex I) and its codestream header (annex A). */

import type { WindowReader } from './containers/file.ts';
import { boxes, type Part } from './containers/parts.ts';
import { readColourSpace, readProfile } from './icc.ts';
import type { ImageFacts, MetadataKind, Profile, UnreadableKind } from './image-info.ts';

/** Markers SOC and SIZ, with which every codestream starts. */
const CODESTREAM_START = 0xff4fff51;

/** Kinds of metadata by the UUID of their box, in hex. */
const METADATA: Readonly<Record<string, MetadataKind>> = {
  '4a706754696666457869662d3e4a5032': 'exif', // "JpgTiffExif->JP2"
  be7acfcb97a942e89c71999491e3afac: 'xmp', // XMP specification, part 3, 1.1.4
  '33c7a4d2b81d4723a0baf1a3e097ad38': 'iptc',
};

/** Methods of a colour specification box (ISO/IEC 15444-1, I.5.3.3; 15444-2, M.11.7.2 for the last). */
export const METHODS = { enumerated: 1, profile: 2, anyProfile: 3 } as const;

/** Enumerated colour spaces that ImageMagick converts correctly (ISO/IEC 15444-1, table I.10). */
export const JP2_COLOURS: Readonly<Record<'srgb' | 'grey' | 'sycc', number>> = {
  srgb: 16,
  grey: 17,
  sycc: 18,
};

/** Colour spaces of profiles that are converted. Those of CMYK and Lab would be applied to wrong channels. */
const PROFILE_SPACES = ['RGB ', 'GRAY'];

/** Offset of the first component in a codestream. Each has three bytes: depth, and horizontal and vertical sampling factor. */
export const SIZ_COMPONENTS_AT = 42;
/** Maximum number of components whose sampling factors are read. */
const MAX_COMPONENTS = 16;

/** First two markers of a codestream (ISO/IEC 15444-1, A.5.1). */
export interface Siz {
  readonly bytes: Buffer;
  /** Horizontal and vertical sampling factors of the components; empty if there are too many. */
  readonly factors: readonly (readonly [x: number, y: number])[];
}

/** Colour specification: a profile, or an enumerated colour space. */
interface Colour {
  readonly method: number;
  readonly space?: number;
  readonly profile?: { readonly at: number; readonly length: number };
}

/** Structure of a JPEG 2000 file. */
export interface Jp2Layout {
  readonly components?: number;
  readonly codestream?: number;
  readonly siz?: Siz;
  readonly header?: Part;
  /** Whether the header has a channel definition box. */
  readonly channelsDefined: boolean;
  readonly hasPalette: boolean;
  /** Whether the second component has fewer samples than the first. */
  readonly isSubsampled: boolean;
  /** First colour specification by one of the methods that OpenJPEG knows. It ignores all others. */
  readonly colour?: Colour;
  readonly image: ImageFacts<'jp2'>;
}

/** Reads size, colours and metadata. */
export async function readJp2(bytes: WindowReader): Promise<ImageFacts<'jp2'>> {
  return (await readJp2Layout(bytes)).image;
}

/** Reads the properties of {@link readJp2}, and the structure of the file. */
export async function readJp2Layout(bytes: WindowReader): Promise<Jp2Layout> {
  const metadata = new Set<MetadataKind>();
  let layout: Omit<Jp2Layout, 'image'> = { channelsDefined: false, hasPalette: false, isSubsampled: false };

  if (isCodestream(await bytes.read(0, 4))) {
    layout = { ...layout, codestream: 0 };
  } else {
    for await (const box of boxes(bytes)) {
      if (box.name === 'jp2h') layout = { ...layout, ...(await readHeaderBox(bytes, box)), header: box };
      if (box.name === 'uuid') {
        const kind = METADATA[(await bytes.read(box.offset, 16)).toString('hex')];
        if (kind) metadata.add(kind);
      }
      if (box.name === 'jp2c') layout = { codestream: box.offset, ...layout };
    }
  }
  const siz = layout.codestream === undefined ? undefined : await readSiz(bytes, layout.codestream);
  const image = { metadata: [...metadata], ...(layout.hasPalette && { paletteKind: 'palette' as const }) };
  if (!siz) return { ...layout, image: { ...image, profile: 'none' } };
  const components = siz.bytes.readUInt16BE(40);
  const [first, second = first] = siz.factors;
  const isSubsampled = first?.[0] !== second?.[0] || first?.[1] !== second?.[1];
  const whole = { ...layout, siz, components, isSubsampled };
  const colours = await readColours(bytes, whole);
  return { ...whole, image: { ...image, ...colours, ...dimensionsOf(siz.bytes) } };
}

/** Reads the profile, and checks whether the tools can convert the colours. */
async function readColours(
  bytes: WindowReader,
  { colour, components = 0, hasPalette, isSubsampled, siz }: Omit<Jp2Layout, 'image'>,
): Promise<{ readonly profile: Profile; readonly unreadable?: UnreadableKind }> {
  const { profile, space } = colour ?? {};
  const [first] = siz?.factors ?? [];
  if (first?.some((factor) => factor > 1)) return { profile: 'none', unreadable: 'jp2-subsampled' };
  if (space !== undefined && !Object.values(JP2_COLOURS).includes(space))
    return { profile: 'none', unreadable: 'jp2-colours' };
  if (!profile) return { profile: 'none' };
  const { at, length } = profile;
  if (isSubsampled || !PROFILE_SPACES.includes(await readColourSpace(bytes, at)))
    return { profile: 'none', unreadable: 'jp2-colours' };
  const model = components > 2 || hasPalette ? 'rgb' : 'grey';
  return { profile: await readProfile(bytes, at, length, model) };
}

const isCodestream = (head: Buffer): boolean =>
  head.length === 4 && head.readUInt32BE(0) === CODESTREAM_START;

async function readHeaderBox(bytes: WindowReader, header: Part): Promise<Partial<Jp2Layout>> {
  let layout: Partial<Jp2Layout> = {};
  for await (const { name, offset, length } of boxes(bytes, { from: header.offset, to: header.end })) {
    if (name === 'cdef') layout = { ...layout, channelsDefined: true };
    if (name === 'pclr') layout = { ...layout, hasPalette: true };
    if (name === 'colr' && !layout.colour) {
      const [method = 0, , , ...space] = await bytes.read(offset, 7);
      if (method === METHODS.enumerated && space.length === 4)
        layout = { ...layout, colour: { method, space: Buffer.from(space).readUInt32BE() } };
      if (method === METHODS.profile)
        layout = { ...layout, colour: { method, profile: { at: offset + 3, length: length - 3 } } };
    }
  }
  return layout;
}

/** Reads the SIZ segment. Decoders use its values, even if the boxes contradict them. */
async function readSiz(bytes: WindowReader, codestream: number): Promise<Siz | undefined> {
  const siz = await bytes.read(codestream, SIZ_COMPONENTS_AT + MAX_COMPONENTS * 3);
  if (siz.length <= SIZ_COMPONENTS_AT || !isCodestream(siz.subarray(0, 4))) return undefined;
  const components = siz.readUInt16BE(SIZ_COMPONENTS_AT - 2);
  const end = SIZ_COMPONENTS_AT + components * 3;
  const factors =
    components > MAX_COMPONENTS || siz.length < end
      ? []
      : Array.from({ length: components }, (_, at): [number, number] => {
          const from = SIZ_COMPONENTS_AT + at * 3;
          return [siz[from + 1] as number, siz[from + 2] as number];
        });
  // A copy: the reader overwrites its buffer.
  return { bytes: Buffer.from(siz.subarray(0, end)), factors };
}

function dimensionsOf(siz: Buffer): Pick<ImageFacts<'jp2'>, 'width' | 'height' | 'gridArea' | 'deep'> {
  const at = (offset: number) => siz.readUInt32BE(offset);
  const [x, y] = [at(16), at(20)];
  const [width, height] = [Math.max(0, at(8) - x), Math.max(0, at(12) - y)];
  const isDeep = ((siz[SIZ_COMPONENTS_AT] ?? 0) & 0x7f) + 1 > 8;
  return {
    width,
    height,
    ...((x > 0 || y > 0) && { gridArea: { x, y, width, height } }),
    ...(isDeep && { deep: true }),
  };
}
