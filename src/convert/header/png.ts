import type { MetadataKind, Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';
import { readOrientation, skipExifMarker } from './exif.ts';
import { compressedProfileKind, MOST_PROFILE_BYTES } from './icc.ts';

/** Chunks that are looked at; an image cut into more is not looked through to its end. */
const MOST_CHUNKS = 10_000;
const COLOUR_TYPE = { grey: 0, palette: 3 } as const;

/** A pixel of a packed screenshot takes 1 to 3 bits, one of a photo 8 and more. */
const MOST_FLAT_BITS = 4;

/** Chunks of which libpng takes the first and passes over others. */
const ONCE = ['iCCP', 'eXIf', 'acTL'];

type Facts = Omit<Picture, 'type'>;

/** What the chunks of a PNG tell (W3C PNG, third edition, section 11). */
export async function readPng(bytes: Bytes): Promise<Facts> {
  const header = Buffer.from(await bytes.at(16, 10));
  if (header.length < 10) return {};
  let facts: Facts = {
    width: header.readUInt32BE(0),
    height: header.readUInt32BE(4),
    ...tonesOf(header[8] as number, header[9] as number),
    profile: 'none',
    metadata: [],
  };
  const seen = new Set<string>();
  let offset = 8;
  for (let chunk = 0; chunk < MOST_CHUNKS; chunk += 1) {
    const head = await bytes.at(offset, 8);
    if (head.length < 8) break;
    const length = head.readUInt32BE(0);
    const name = head.toString('latin1', 4, 8);
    const told = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, offset + 8, length);
    if (ONCE.includes(name)) seen.add(name);
    const metadata = [...new Set([...(facts.metadata ?? []), ...(told?.metadata ?? [])])];
    facts = { ...facts, ...told, metadata };
    offset += 12 + length;
  }
  return { ...facts, flat: offset * 8 < MOST_FLAT_BITS * (facts.width ?? 0) * (facts.height ?? 0) };
}

function tonesOf(depth: number, colourType: number): Pick<Facts, 'tones'> {
  if (colourType === COLOUR_TYPE.palette) return { tones: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { tones: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: Bytes, start: number, length: number) => Promise<Facts | undefined>>
> = {
  eXIf: async (bytes, start) => ({
    ...(await readOrientation(bytes, await skipExifMarker(bytes, start))),
    metadata: ['exif'],
  }),
  async iCCP(bytes, start, length) {
    const chunk = await bytes.at(start, Math.min(length, MOST_PROFILE_BYTES));
    const name = chunk.indexOf(0);
    return { profile: name < 0 ? 'other' : compressedProfileKind(chunk.subarray(name + 2)) };
  },
  // An animated PNG, whose first frame, or a picture of its own, is what readers of PNG show.
  async acTL(bytes, start) {
    const frames = await bytes.at(start, 4);
    return { framesUnread: frames.length === 4 && frames.readUInt32BE(0) > 1 };
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

async function text(bytes: Bytes, start: number, length: number): Promise<Facts | undefined> {
  const [keyword = ''] = (await bytes.at(start, Math.min(length, 80))).toString('latin1').split('\0');
  const kind = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined;
  return kind && { metadata: [kind] };
}
