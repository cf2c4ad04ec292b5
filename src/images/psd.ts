/** @module Reads the header and resources of a PSD, and hides its layers (Adobe Photoshop File Formats Specification, 2019). */
import { type RepairTarget, WindowReader, writeAt } from './containers/file.ts';
import { readProfile } from './icc.ts';
import type { ImageFacts, MetadataKind, PixelFormat, Profile } from './image-info.ts';

const MAX_RESOURCES = 1000;
const HEADER_BYTES = 26;
/** Maximum number of layers that Photoshop allows. */
const MAX_LAYERS = 8000;

const MODE = { cmyk: 4, lab: 9 } as const;
/** Colour modes that ImageMagick decodes correctly. */
const READABLE_MODES = [0, 1, 2, 3, 4, 8, 9];
/** Colour spaces by the colour mode, and their numbers of channels. */
const SPACES: Readonly<Record<number, PixelFormat['colourSpace']>> = {
  ...{ 0: 'grey', 1: 'grey', 2: 'rgb', 3: 'rgb' },
  ...{ 4: 'cmyk', 8: 'grey', 9: 'lab' },
};
const CHANNELS: Readonly<Record<PixelFormat['colourSpace'], number>> = { grey: 1, rgb: 3, lab: 3, cmyk: 4 };
/** Bits per channel that ImageMagick decodes correctly. */
const READABLE_DEPTHS = [1, 8, 16];

const RESOURCE = { iptc: 1028, profile: 1039, version: 1057, exif: 1058, xmp: 1060 } as const;
const METADATA: Readonly<Record<number, MetadataKind>> = {
  [RESOURCE.iptc]: 'iptc',
  [RESOURCE.exif]: 'exif',
  [RESOURCE.xmp]: 'xmp',
};

/** Reads size, colours and metadata, and whether the file has a merged image of its layers. */
export async function readPsd(bytes: WindowReader): Promise<ImageFacts<'psd'>> {
  const header = Buffer.from(await bytes.read(0, HEADER_BYTES));
  if (header.length < HEADER_BYTES) return {};
  const [depth, mode] = [header.readUInt16BE(22), header.readUInt16BE(24)];
  const colourTable = await lengthAt(bytes, HEADER_BYTES);
  const resources = await readResources(bytes, HEADER_BYTES + 4 + colourTable);
  const { count } = await findLayerCount(bytes);
  const readable = READABLE_MODES.includes(mode) && READABLE_DEPTHS.includes(depth);
  const colourSpace = SPACES[mode] ?? 'rgb';
  return {
    pixels: { alpha: header.readUInt16BE(12) > CHANNELS[colourSpace], bits: depth, colourSpace },
    width: header.readUInt32BE(18),
    height: header.readUInt32BE(14),
    ...(depth === 16 && { deep: true }),
    ...(mode === MODE.cmyk && { cmyk: true }),
    ...(mode === MODE.lab && { lab: true }),
    ...(!readable && { unreadable: 'psd-mode' }),
    ...(Math.abs(count) > MAX_LAYERS && { unreadable: 'psd-layers' }),
    ...resources,
  };
}

/**
 * Finds the number of layers. It is negative if the merged image has transparency.
 *
 * @returns its offset in the file, and the number, which is 0 if there is no list of layers
 */
async function findLayerCount(bytes: WindowReader): Promise<{ offset: number; count: number }> {
  const resources = HEADER_BYTES + 4 + (await lengthAt(bytes, HEADER_BYTES));
  const start = resources + 4 + (await lengthAt(bytes, resources));
  // Length of the section, length of the list, number of layers.
  const section = await bytes.read(start, 10);
  const hasLayers = section.length === 10 && section.readUInt32BE(0) > 0 && section.readUInt32BE(4) > 0;
  return { offset: start + 8, count: hasLayers ? section.readInt16BE(8) : 0 };
}

async function lengthAt(bytes: WindowReader, offset: number): Promise<number> {
  const length = await bytes.read(offset, 4);
  return length.length < 4 ? 0 : length.readUInt32BE(0);
}

/**
 * Reads the image resources. Each has a signature, an ID, a name, a length and data; name and data are padded to even.
 */
async function readResources(bytes: WindowReader, start: number): Promise<ImageFacts<'psd'>> {
  const end = start + 4 + (await lengthAt(bytes, start));
  const metadata = new Set<MetadataKind>();
  let profile: Profile = 'none';
  let merged = true;
  let offset = start + 4;
  for (let count = 0; count < MAX_RESOURCES && offset < end; count += 1) {
    const head = await bytes.read(offset, 7);
    if (head.length < 7 || head.toString('latin1', 0, 4) !== '8BIM') break;
    const number = head.readUInt16BE(4);
    const nameBytes = ((head[6] as number) + 2) & ~1;
    const length = await lengthAt(bytes, offset + 6 + nameBytes);
    const data = offset + 10 + nameBytes;
    const kind = METADATA[number];
    if (kind) metadata.add(kind);
    if (number === RESOURCE.profile) profile = await readProfile(bytes, data, length);
    // A version of four bytes, then a flag for a real merged image.
    if (number === RESOURCE.version) merged = (await bytes.read(data, 5))[4] !== 0;
    offset = data + length + (length & 1);
  }
  return { profile, metadata: [...metadata], ...(!merged && { unreadable: 'psd-without-merged-image' }) };
}

/**
 * Reduces the layer count to one. Only the merged image is converted, but ImageMagick 7 counts layers as frames and
 * rejects too many. A file with more layers than Photoshop allows is not changed, and is rejected later.
 */
export async function hideLayers({ file }: RepairTarget): Promise<undefined> {
  const { offset, count } = await findLayerCount(new WindowReader(file));
  const one = Buffer.alloc(2);
  one.writeInt16BE(Math.sign(count));
  if (Math.abs(count) > 1 && Math.abs(count) <= MAX_LAYERS) await writeAt(file, offset, one);
}
