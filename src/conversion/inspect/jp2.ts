import type { ImageInfo, MetadataKind, Profile } from '../plan/types.ts';
import { readProfile } from './icc.ts';
import type { WindowReader } from './window-reader.ts';

/** What a JPEG 2000 says of itself: the boxes of a JP2 (ISO/IEC 15444-1, annex I), and its codestream (annex A). */

/** Boxes that are looked at, in the file and in its header. */
const MAX_BOXES = 200;
/** The markers that every codestream starts with: SOC, then SIZ. */
const CODESTREAM_START = 0xff4fff51;

/** Boxes of metadata by their UUID, in hex. */
const METADATA: Readonly<Record<string, MetadataKind>> = {
  '4a706754696666457869662d3e4a5032': 'exif', // "JpgTiffExif->JP2"
  be7acfcb97a942e89c71999491e3afac: 'xmp', // XMP specification, part 3, 1.1.4
  '33c7a4d2b81d4723a0baf1a3e097ad38': 'iptc',
};

export interface Jp2Layout {
  /** Channels, and their bits, as the codestream has them. */
  readonly components?: number;
  /** Where the codestream starts. */
  readonly codestream?: number;
  /** Where the header box starts, and how long it is. */
  readonly header?: { readonly start: number; readonly length: number };
  /** Whether the header says what its channels are. */
  readonly channelsDefined: boolean;
  /** The number of the colour space that it names; undefined when it has a profile instead. */
  readonly colourSpace?: number;
  readonly image: Omit<ImageInfo, 'type'>;
}

export async function readJp2(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  return (await readJp2Layout(bytes)).image;
}

/** As {@link readJp2}, with what is needed to change the file. */
export async function readJp2Layout(bytes: WindowReader): Promise<Jp2Layout> {
  const metadata = new Set<MetadataKind>();
  let layout: Omit<Jp2Layout, 'image'> = { channelsDefined: false };
  let facts: Omit<ImageInfo, 'type'> = { profile: 'none' };

  if (isCodestream(await bytes.read(0, 4))) {
    layout = { ...layout, codestream: 0 };
  } else {
    for await (const box of boxesFrom(bytes, 0, Number.POSITIVE_INFINITY)) {
      if (box.name === 'jp2h') {
        const parsed = await readHeaderBox(bytes, box);
        facts = { ...facts, ...parsed.facts };
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
    image: { ...facts, ...siz?.size, ...(siz?.deep && { deep: true }), metadata: [...metadata] },
  };
}

const isCodestream = (head: Buffer): boolean =>
  head.length === 4 && head.readUInt32BE(0) === CODESTREAM_START;

interface Box {
  readonly name: string;
  readonly start: number;
  readonly body: number;
  /** Behind its last byte; of a box that goes on to the end of the file, infinity. */
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
): Promise<{ facts: Omit<ImageInfo, 'type'>; layout: Partial<Jp2Layout> }> {
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
  return { facts: { profile, ...(paletteKind && { paletteKind }) }, layout };
}

/** The SIZ segment: what is decoded is what it says, whatever the boxes around it say. */
async function readSiz(
  bytes: WindowReader,
  codestream: number,
): Promise<{ size: { width: number; height: number }; components: number; deep: boolean } | undefined> {
  const siz = await bytes.read(codestream, 43);
  if (siz.length < 43 || !isCodestream(siz.subarray(0, 4))) return undefined;
  const at = (offset: number) => siz.readUInt32BE(offset);
  return {
    size: { width: Math.max(0, at(8) - at(16)), height: Math.max(0, at(12) - at(20)) },
    components: siz.readUInt16BE(40),
    deep: ((siz[42] as number) & 0x7f) + 1 > 8,
  };
}
