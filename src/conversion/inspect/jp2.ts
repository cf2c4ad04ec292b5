/** @module Reads the boxes of a JPEG 2000 file (ISO/IEC 15444-1, annex I) and its codestream header (annex A). */
import type { ImageInfo, MetadataKind, Profile } from '../plan/image-info.ts';
import { readProfile } from './icc.ts';
import type { WindowReader } from './window-reader.ts';

/** Maximum number of boxes to read, in the file and in its header. */
const MAX_BOXES = 200;
/** Markers SOC and SIZ, with which every codestream starts. */
const CODESTREAM_START = 0xff4fff51;

/** Kinds of metadata by the UUID of their box, in hex. */
const METADATA: Readonly<Record<string, MetadataKind>> = {
  '4a706754696666457869662d3e4a5032': 'exif', // "JpgTiffExif->JP2"
  be7acfcb97a942e89c71999491e3afac: 'xmp', // XMP specification, part 3, 1.1.4
  '33c7a4d2b81d4723a0baf1a3e097ad38': 'iptc',
};

/** Structure of a JPEG 2000 file. */
export interface Jp2Layout {
  /** Number of channels in the codestream. */
  readonly components?: number;
  /** Offset of the codestream. */
  readonly codestream?: number;
  /** Offset and length of the header box. */
  readonly header?: { readonly start: number; readonly length: number };
  /** Whether the header has a channel definition box. */
  readonly channelsDefined: boolean;
  /** Enumerated colour space; undefined if the header has a profile instead. */
  readonly colourSpace?: number;
  readonly image: Omit<ImageInfo, 'type'>;
}

/** Reads size, colours and metadata. */
export async function readJp2(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  return (await readJp2Layout(bytes)).image;
}

/** Reads the properties of {@link readJp2}, and the structure of the file. */
export async function readJp2Layout(bytes: WindowReader): Promise<Jp2Layout> {
  const metadata = new Set<MetadataKind>();
  let layout: Omit<Jp2Layout, 'image'> = { channelsDefined: false };
  let info: Omit<ImageInfo, 'type'> = { profile: 'none' };

  if (isCodestream(await bytes.read(0, 4))) {
    layout = { ...layout, codestream: 0 };
  } else {
    for await (const box of boxesFrom(bytes, 0, Number.POSITIVE_INFINITY)) {
      if (box.name === 'jp2h') {
        const parsed = await readHeaderBox(bytes, box);
        info = { ...info, ...parsed.info };
        layout = { ...layout, ...parsed.layout, header: { start: box.start, length: box.end - box.start } };
      }
      if (box.name === 'uuid') {
        const kind = METADATA[(await bytes.read(box.body, 16)).toString('hex')];
        if (kind) metadata.add(kind);
      }
      if (box.name === 'jp2c') layout = { codestream: box.body, ...layout };
    }
  }
  const siz = layout.codestream === undefined ? undefined : await readSiz(bytes, layout.codestream);
  return {
    ...layout,
    ...(siz && { components: siz.components }),
    image: { ...info, ...siz?.size, ...(siz?.deep && { deep: true }), metadata: [...metadata] },
  };
}

const isCodestream = (head: Buffer): boolean =>
  head.length === 4 && head.readUInt32BE(0) === CODESTREAM_START;

interface Box {
  readonly name: string;
  readonly start: number;
  readonly body: number;
  /** Offset after the last byte; infinity for a box that extends to the end of the file. */
  readonly end: number;
}

async function* boxesFrom(bytes: WindowReader, from: number, to: number): AsyncGenerator<Box> {
  let start = from;
  for (let count = 0; count < MAX_BOXES && start < to; count += 1) {
    const head = await bytes.read(start, 16);
    if (head.length < 8) return;
    const stated = head.readUInt32BE(0);
    const large = stated === 1 && head.length === 16;
    const length = large ? Number(head.readBigUInt64BE(8)) : stated || Number.POSITIVE_INFINITY;
    const body = start + (large ? 16 : 8);
    const end = start + length;
    if (end < body) return;
    yield { name: head.toString('latin1', 4, 8), start, body, end };
    start = end;
  }
}

async function readHeaderBox(
  bytes: WindowReader,
  header: Box,
): Promise<{ info: Omit<ImageInfo, 'type'>; layout: Partial<Jp2Layout> }> {
  let profile: Profile = 'none';
  let layout: { channelsDefined?: boolean; colourSpace?: number } = {};
  let paletteKind: 'palette' | undefined;
  for await (const { name, body, end } of boxesFrom(bytes, header.body, header.end)) {
    if (name === 'cdef') layout = { ...layout, channelsDefined: true };
    if (name === 'pclr') paletteKind = 'palette';
    if (name === 'colr') {
      const colour = await bytes.read(body, 7);
      if (colour[0] === 1 && colour.length === 7) layout = { ...layout, colourSpace: colour.readUInt32BE(3) };
      if (colour[0] === 2) profile = await readProfile(bytes, body + 3, end - body - 3);
    }
  }
  return { info: { profile, ...(paletteKind && { paletteKind }) }, layout };
}

/** Reads the SIZ segment. Decoders use its values, even if the boxes contradict them. */
async function readSiz(
  bytes: WindowReader,
  codestream: number,
): Promise<
  { size: Pick<ImageInfo, 'width' | 'height' | 'gridArea'>; components: number; deep: boolean } | undefined
> {
  const siz = await bytes.read(codestream, 43);
  if (siz.length < 43 || !isCodestream(siz.subarray(0, 4))) return undefined;
  const at = (offset: number) => siz.readUInt32BE(offset);
  const [x, y] = [at(16), at(20)];
  const [width, height] = [Math.max(0, at(8) - x), Math.max(0, at(12) - y)];
  return {
    size: { width, height, ...((x > 0 || y > 0) && { gridArea: { x, y, width, height } }) },
    components: siz.readUInt16BE(40),
    deep: ((siz[42] as number) & 0x7f) + 1 > 8,
  };
}
