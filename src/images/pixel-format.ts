/** @module Reads how the pixels of an image are stored, for the description of an image. Conversions do not depend on it. */
import { inflateSync, constants as zlib } from 'node:zlib';
import { readBmpLayout } from './bmp.ts';
import type { WindowReader } from './containers/file.ts';
import { TiffReader } from './containers/ifd.ts';
import { gifBlocks, jpegSegments, pngChunks, riffChunks } from './containers/parts.ts';
import { alphasOf, firstTileOf, isProfile, META_BYTES, orientationIn } from './heif.ts';
import { metaIn } from './heif-items.ts';
import type { ImageInfo, Orientation } from './image-info.ts';
import { readJp2Layout } from './jp2.ts';
import { COLOUR_MODELS, isFrameHeader } from './jpeg.ts';
import { readJxlHeader } from './jxl.ts';
import { GREYS, hasAlpha, LAB, PHOTOMETRIC, readEncoding, TAG } from './tiff.ts';

/** Model of the stored colours. */
type ColourSpace = 'rgb' | 'grey' | 'cmyk' | 'lab';

/** How the pixels of an image are stored. */
export interface PixelFormat {
  readonly alpha: boolean;
  /** Bits per channel, of the colours of a palette if there is one. */
  readonly bits: number;
  readonly colourSpace: ColourSpace;
  /** The start of the embedded colour profile, with its description. */
  readonly profile?: Buffer | undefined;
  /** Set for formats whose {@link ImageInfo} has none, because their decoders apply it. */
  readonly orientation?: Orientation | undefined;
}

type Reader = (bytes: WindowReader, image: ImageInfo) => Promise<PixelFormat | undefined>;

/** Bytes of a profile that contain its description: profiles with tables are larger. */
const PROFILE_BYTES = 64 * 1024;

/** Reads the start of a profile. */
const readStart = async (bytes: WindowReader, at: number, length: number): Promise<Buffer> =>
  Buffer.from(await bytes.read(at, Math.min(length, PROFILE_BYTES)));

const RGB: PixelFormat = { alpha: false, bits: 8, colourSpace: 'rgb' };
/** Spaces by the colour mode of a PSD. */
const PSD_SPACES: Readonly<Record<number, ColourSpace>> = {
  ...{ 0: 'grey', 1: 'grey', 2: 'rgb', 3: 'rgb' },
  ...{ 4: 'cmyk', 8: 'grey', 9: 'lab' },
};
const PSD_CHANNELS: Readonly<Record<ColourSpace, number>> = { grey: 1, rgb: 3, lab: 3, cmyk: 4 };

const readIcon: Reader = async () => ({ ...RGB, alpha: true }); // by its mask, if not by its pixels

const readHeif: Reader = async (bytes) => {
  const meta = metaIn(Buffer.from(await bytes.read(0, META_BYTES)));
  const own = meta.propertiesOf(meta.primary) ?? meta.properties;
  const coded = meta.propertiesOf(firstTileOf(meta)) ?? [];
  const channels = [...own, ...coded].find(({ name }) => name === 'pixi')?.body;
  return {
    alpha: alphasOf(meta).length > 0,
    bits: channels?.[5] ?? 8,
    colourSpace: channels?.[4] === 1 ? 'grey' : 'rgb',
    profile: own.find(({ name, body }) => name === 'colr' && isProfile(body))?.body.subarray(4),
    orientation: orientationIn(own),
  };
};

const READERS: Readonly<Record<ImageInfo['type'], Reader>> = {
  async png(bytes) {
    const [depth, type] = await bytes.read(24, 2);
    if (depth === undefined || type === undefined) return undefined;
    let [alpha, profile] = [(type & 4) !== 0, undefined as Buffer | undefined];
    for await (const { name, offset, length } of pngChunks(bytes)) {
      if (name === 'IDAT') break;
      if (name === 'tRNS') alpha = true;
      if (name === 'iCCP') profile ??= inflateProfile(await readStart(bytes, offset, length));
    }
    return { alpha, bits: type === 3 ? 8 : depth, colourSpace: (type & 2) === 0 ? 'grey' : 'rgb', profile };
  },
  async jpg(bytes) {
    let format: PixelFormat | undefined;
    let profile: Buffer | undefined;
    for await (const { marker, offset, length } of jpegSegments(bytes)) {
      const head = await bytes.read(offset, 14);
      const [bits = 8, , , , , components] = head;
      if (isFrameHeader(marker) && components !== undefined)
        format = { alpha: false, bits, colourSpace: COLOUR_MODELS[components] ?? 'rgb' };
      // The parts of a profile are numbered from 1.
      if (marker === 0xe2 && head.toString('latin1', 0, 12) === 'ICC_PROFILE\0' && head[12] === 1)
        profile ??= Buffer.from(await bytes.read(offset + 14, length - 14));
    }
    return format && { ...format, profile };
  },
  async gif(bytes) {
    for await (const { name, head } of gifBlocks(bytes))
      if (name === 'extension' && head[1] === 0xf9 && ((head[3] ?? 0) & 1) === 1)
        return { ...RGB, alpha: true };
    return RGB;
  },
  async webp(bytes, { animation, opaque }) {
    let profile: Buffer | undefined;
    for await (const { name, offset, length } of riffChunks(bytes, 4))
      if (name === 'ICCP') profile = await readStart(bytes, offset, length);
    return { ...RGB, alpha: animation ? animation.transparent === true : opaque !== true, profile };
  },
  async bmp(bytes, { opaque }) {
    const layout = await readBmpLayout(bytes);
    if (!layout) return undefined;
    const { masks, profile } = layout;
    const alpha = opaque !== true && (masks?.alpha ?? 0) !== 0;
    return { ...RGB, alpha, profile: profile && (await readStart(bytes, profile.at, profile.length)) };
  },
  async tiff(bytes) {
    const tiff = await TiffReader.open(bytes);
    const offset = await tiff?.first();
    if (!tiff || !offset) return undefined;
    const tags = await tiff.tags(offset);
    const { photometric, bits, extraSamples } = await readEncoding(tiff, tags);
    const profile = tags.get(TAG.profile);
    const isPalette = photometric === PHOTOMETRIC.palette;
    const isGrey = GREYS.includes(photometric) && !isPalette;
    const other = LAB.includes(photometric) ? 'lab' : isGrey ? 'grey' : 'rgb';
    return {
      alpha: hasAlpha(extraSamples),
      bits: isPalette ? 8 : bits,
      colourSpace: photometric === PHOTOMETRIC.separated ? 'cmyk' : other,
      profile: profile && (await readStart(bytes, profile.value, profile.count)),
    };
  },
  svg: async () => ({ ...RGB, alpha: true }),
  pdf: async () => RGB,
  ico: readIcon,
  cur: readIcon,
  avif: readHeif,
  heic: readHeif,
  async jxl(bytes) {
    const { header } = await readJxlHeader(bytes);
    if (!header) return undefined;
    const { hasAlpha: alpha, depth: bits, isCmyk, isGrey, orientation } = header;
    const colourSpace = isCmyk ? 'cmyk' : isGrey ? 'grey' : 'rgb';
    return { alpha, bits, colourSpace, orientation: orientation as Orientation };
  },
  async jp2(bytes) {
    const { components, siz, colour, hasPalette } = await readJp2Layout(bytes);
    if (!siz || components === undefined) return undefined;
    const profile = colour?.profile;
    return {
      alpha: components === 2 || components === 4,
      bits: ((siz.bytes[42] ?? 7) & 0x7f) + 1,
      colourSpace: components < 3 && !hasPalette ? 'grey' : 'rgb',
      profile: profile && (await readStart(bytes, profile.at, profile.length)),
    };
  },
  async psd(bytes) {
    const header = Buffer.from(await bytes.read(0, 26));
    if (header.length < 26) return undefined;
    const colourSpace = PSD_SPACES[header.readUInt16BE(24)] ?? 'rgb';
    return {
      alpha: header.readUInt16BE(12) > PSD_CHANNELS[colourSpace],
      bits: header.readUInt16BE(22),
      colourSpace,
    };
  },
};

/** Reads how the pixels of an image are stored. Undefined if its header ends too early. */
export function readPixelFormat(bytes: WindowReader, image: ImageInfo): Promise<PixelFormat | undefined> {
  return READERS[image.type](bytes, image);
}

/** Decompresses the start of a profile in a PNG, after its name. */
function inflateProfile(chunk: Buffer): Buffer | undefined {
  try {
    const at = chunk.indexOf(0) + 2;
    const limits = { finishFlush: zlib.Z_SYNC_FLUSH, maxOutputLength: 64 * PROFILE_BYTES };
    return inflateSync(chunk.subarray(at), limits).subarray(0, PROFILE_BYTES);
  } catch {
    return undefined;
  }
}

/**
 * Returns the description of a profile (ICC.1:2022, 9.2.41 and 10.15; version 2, 6.5.17), such as "sRGB IEC61966-2.1".
 *
 * @returns undefined if it has none
 */
export function describeProfile(profile: Buffer): string | undefined {
  const count = profile.length < 132 ? 0 : Math.min(profile.readUInt32BE(128), 100);
  for (let at = 132; at + 12 <= Math.min(profile.length, 132 + 12 * count); at += 12) {
    if (profile.toString('latin1', at, at + 4) !== 'desc') continue;
    const tag = profile.subarray(profile.readUInt32BE(at + 4)).subarray(0, profile.readUInt32BE(at + 8));
    const kind = tag.toString('latin1', 0, 4);
    if (kind === 'desc' && tag.length >= 12)
      return tag.toString('latin1', 12, 12 + tag.readUInt32BE(8)).replace(/\0.*$/s, '') || undefined;
    if (kind !== 'mluc' || tag.length < 28) return undefined;
    const text = tag.subarray(tag.readUInt32BE(24)).subarray(0, tag.readUInt32BE(20));
    const whole = Buffer.from(text.subarray(0, text.length & ~1)); // an incomplete profile can end within a character
    return whole.swap16().toString('utf16le').replace(/\0.*$/s, '') || undefined;
  }
  return undefined;
}
