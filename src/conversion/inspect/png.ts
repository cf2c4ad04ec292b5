import type { ImageInfo, MetadataKind } from '../plan/types.ts';
import { classifyDeflatedProfile, MAX_PROFILE_BYTES } from './icc.ts';
import { readOrientation, skipExifMarker } from './ifd.ts';
import type { WindowReader } from './window-reader.ts';

/** Chunks that are looked at; an image cut into more is not looked through to its end. */
const MAX_CHUNKS = 10_000;
const COLOUR_TYPE = { grey: 0, palette: 3 } as const;

/** A pixel of a packed screenshot takes 1 to 3 bits, one of a photo 8 and more. */
const MAX_FLAT_BITS_PER_PIXEL = 4;

/** Chunks of which libpng takes the first and passes over others. */
const ONCE = ['iCCP', 'eXIf', 'acTL'];

type PartialInfo = Omit<ImageInfo, 'type'>;

/** What the chunks of a PNG tell (W3C PNG, third edition, section 11). */
export async function readPng(bytes: WindowReader): Promise<PartialInfo> {
  const header = Buffer.from(await bytes.read(16, 10));
  if (header.length < 10) return {};
  let facts: PartialInfo = {
    width: header.readUInt32BE(0),
    height: header.readUInt32BE(4),
    ...paletteKindOf(header[8] as number, header[9] as number),
    ...(header[8] === 16 && { deep: true }),
    profile: 'none',
    metadata: [],
  };
  const seen = new Set<string>();
  let offset = 8;
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const head = await bytes.read(offset, 8);
    if (head.length < 8) break;
    const length = head.readUInt32BE(0);
    const name = head.toString('latin1', 4, 8);
    const parsed = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, offset + 8, length);
    if (ONCE.includes(name)) seen.add(name);
    const metadata = [...new Set([...(facts.metadata ?? []), ...(parsed?.metadata ?? [])])];
    facts = { ...facts, ...parsed, metadata };
    offset += 12 + length;
  }
  return { ...facts, flat: offset * 8 < MAX_FLAT_BITS_PER_PIXEL * (facts.width ?? 0) * (facts.height ?? 0) };
}

function paletteKindOf(depth: number, colourType: number): Pick<PartialInfo, 'paletteKind'> {
  if (colourType === COLOUR_TYPE.palette) return { paletteKind: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { paletteKind: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, start: number, length: number) => Promise<PartialInfo | undefined>>
> = {
  eXIf: async (bytes, start) => ({
    ...(await readOrientation(bytes, await skipExifMarker(bytes, start))),
    metadata: ['exif'],
  }),
  async iCCP(bytes, start, length) {
    const chunk = await bytes.read(start, Math.min(length, MAX_PROFILE_BYTES));
    const name = chunk.indexOf(0);
    return { profile: name < 0 ? 'other' : classifyDeflatedProfile(chunk.subarray(name + 2)) };
  },
  // An animated PNG, whose first frame, or a picture of its own, is what readers of PNG show.
  async acTL(bytes, start) {
    const frames = await bytes.read(start, 4);
    return { hasIgnoredFrames: frames.length === 4 && frames.readUInt32BE(0) > 1 };
  },
  iTXt: text,
  tEXt: text,
  zTXt: text,
};

/** Keywords under which tools hide what PNG had no place for; "APP1" may be either, and is mostly EXIF. */
const KEYWORDS: Readonly<Record<string, MetadataKind>> = {
  'XML:com.adobe.xmp': 'xmp',
  'Raw profile type xmp': 'xmp',
  'Raw profile type exif': 'exif',
  'Raw profile type APP1': 'exif',
  'Raw profile type iptc': 'iptc',
};

async function text(bytes: WindowReader, start: number, length: number): Promise<PartialInfo | undefined> {
  const [keyword = ''] = (await bytes.read(start, Math.min(length, 80))).toString('latin1').split('\0');
  const kind = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined;
  return kind && { metadata: [kind] };
}
