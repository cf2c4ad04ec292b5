/**
 * @module Rewrites the headers of a JPEG 2000 that ImageMagick misreads: declares alpha and colours that the file leaves out,
 * and divides sampling factors that all components share.
 */
import type { FileHandle } from 'node:fs/promises';
import { type RepairTarget, readAt, replaceRange, WindowReader, writeAt } from './containers/file.ts';
import { type Box, encodeBox, findBox, parseBoxes } from './containers/parts.ts';
import { JP2_COLOURS, type Jp2Layout, METHODS, readJp2Layout, SIZ_COMPONENTS_AT, type Siz } from './jp2.ts';

/** Enumerated colour spaces by number of channels, with or without alpha. */
const DEFAULT_COLOURS: readonly (number | undefined)[] = [
  ...[undefined, JP2_COLOURS.grey, JP2_COLOURS.grey, JP2_COLOURS.srgb, JP2_COLOURS.srgb],
];
/** Numbers of channels of which the last one is alpha. Writers such as Pillow omit the channel definition. */
const WITH_ALPHA: readonly number[] = [2, 4];

/** Maximum size of a header box to change. Only headers with large profiles, or malicious ones, are longer. */
const MAX_HEADER_BYTES = 4 * 1024 ** 2;

/**
 * Rewrites the headers of a file if ImageMagick would misread them.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 * @throws {ServiceError} DISK_FULL if the disk has no space for the file with another header
 */
export async function repairJp2(target: RepairTarget): Promise<undefined> {
  const { file } = target;
  const layout = await readJp2Layout(new WindowReader(file));
  const { header, codestream, siz } = layout;
  if (codestream === undefined || !siz) return;
  if (header && (header.end > codestream || header.end - header.start > MAX_HEADER_BYTES)) return;
  const divided = divideSampling(siz);
  if (divided) await writeAt(file, codestream, divided.bytes);
  const newHeader = await rewriteHeader(file, layout, divided ?? siz);
  if (newHeader) await replaceRange(target, header ?? { start: 0, end: 0 }, newHeader);
}

/** Offsets in SIZ of the horizontal values; the vertical ones follow them (ISO/IEC 15444-1, A.5.1). */
const GRID = { size: 8, origin: 16, tile: 24, tileOrigin: 32 } as const;

/**
 * Divides the reference grid by the factors that all components share. The samples stay the same. ImageMagick would take every
 * second sample of the first quarter.
 *
 * @returns the new SIZ, or undefined if it stays the same, or if the tiles cannot be divided
 */
function divideSampling({ bytes, factors }: Siz): Siz | undefined {
  const divisors = [0, 1].map((axis) => factors.map((factor) => factor[axis] as number).reduce(gcd, 0));
  if (divisors.includes(0) || divisors.every((one) => one === 1)) return undefined; // 0 is invalid
  const changed = Buffer.from(bytes);
  for (const [axis, divisor] of divisors.entries()) {
    const at = (field: keyof typeof GRID): number => GRID[field] + axis * 4;
    const get = (field: keyof typeof GRID): number => bytes.readUInt32BE(at(field));
    const [size, origin] = [Math.ceil(get('size') / divisor), Math.ceil(get('origin') / divisor)];
    const isOneTile = get('tileOrigin') + get('tile') >= get('size');
    if (size <= origin || (!isOneTile && (get('tile') % divisor > 0 || get('tileOrigin') % divisor > 0)))
      return undefined;
    changed.writeUInt32BE(size, at('size'));
    changed.writeUInt32BE(origin, at('origin'));
    changed.writeUInt32BE(isOneTile ? size - origin : get('tile') / divisor, at('tile'));
    changed.writeUInt32BE(isOneTile ? origin : get('tileOrigin') / divisor, at('tileOrigin'));
    for (const [component, factor] of factors.entries())
      changed[SIZ_COMPONENTS_AT + component * 3 + 1 + axis] = (factor[axis] as number) / divisor;
  }
  return {
    bytes: changed,
    factors: factors.map(([x, y]) => [x / (divisors[0] as number), y / (divisors[1] as number)]),
  };
}

const gcd = (one: number, other: number): number => (other === 0 ? one : gcd(other, one % other));

/** Returns the new header box, or everything before a bare codestream; undefined if nothing changes. */
async function rewriteHeader(file: FileHandle, layout: Jp2Layout, siz: Siz): Promise<Buffer | undefined> {
  const { header, components = 0, image } = layout;
  const isWrong = layout.siz !== siz;
  const colour = missingColour(layout);
  const definesAlpha = WITH_ALPHA.includes(components) && !layout.channelsDefined && isKnown(layout);
  const definition = definesAlpha ? [encodeBox('cdef', channelDefinitions(components))] : [];
  if (header) {
    if (!isWrong && colour === undefined && !definesAlpha) return undefined;
    const { bytes } = await readAt(file, header.offset, header.length);
    const boxes = parseBoxes(bytes, true);
    const imageHeader = findBox(boxes, 'ihdr');
    if (imageHeader && isWrong) sizeOf(siz).copy(imageHeader);
    const kept = replaceColour(boxes, colour).map(({ name, body }) => encodeBox(name, body));
    return encodeBox('jp2h', ...kept, ...definition);
  }
  if (!definesAlpha && colour !== JP2_COLOURS.sycc) return undefined;
  const imageHeader = Buffer.alloc(14);
  sizeOf(siz).copy(imageHeader);
  imageHeader.writeUInt16BE(components, 8);
  imageHeader.set([image.deep ? 15 : 7, 7, 0, 0], 10); // bits minus 1; wavelet compression; known colour space; no intellectual property
  return Buffer.concat([
    encodeBox('jP  ', Buffer.from('\r\n\x87\n', 'latin1')),
    encodeBox('ftyp', Buffer.from('jp2 \0\0\0\0jp2 ', 'latin1')),
    encodeBox(
      'jp2h',
      encodeBox('ihdr', imageHeader),
      encodeBox('colr', enumerated(colour ?? 0)),
      ...definition,
    ),
    Buffer.from('\0\0\0\0jp2c', 'latin1'), // length 0: up to the end of the file
  ]);
}

/** Height and width, as an image header box starts with them. */
function sizeOf({ bytes }: Siz): Buffer {
  const size = Buffer.alloc(8);
  for (const [axis, at] of [4, 0].entries())
    size.writeUInt32BE(
      Math.max(0, bytes.readUInt32BE(GRID.size + axis * 4) - bytes.readUInt32BE(GRID.origin + axis * 4)),
      at,
    );
  return size;
}

/** Returns whether the colours are of a kind that is converted, or not stated. */
const isKnown = ({ colour }: Jp2Layout): boolean =>
  colour?.space === undefined || Object.values(JP2_COLOURS).includes(colour.space);

/**
 * Returns the enumerated colour space that the header must state instead of its own; undefined to keep its own. Subsampled
 * components are sYCC, as in opj_decompress, whatever the header states.
 */
function missingColour(layout: Jp2Layout): number | undefined {
  const { colour, components = 0, hasPalette, isSubsampled } = layout;
  const { srgb, grey, sycc } = JP2_COLOURS;
  if (hasPalette || !isKnown(layout) || colour?.method === METHODS.profile) return undefined;
  const channels = components > 2 ? srgb : grey;
  const right = isSubsampled && components > 2 ? sycc : colour?.space === sycc ? sycc : channels;
  if (colour?.space === right || DEFAULT_COLOURS[components] === undefined) return undefined;
  return right;
}

/**
 * Replaces the colour specification. A profile by the method of JPX becomes one by the method of JP2, because OpenJPEG ignores
 * other methods.
 */
function replaceColour(boxes: readonly Box[], colour: number | undefined): Box[] {
  if (colour === undefined) return [...boxes];
  const isProfile = ({ name, body }: Box) => name === 'colr' && body[0] === METHODS.anyProfile;
  const profile = boxes.find(isProfile);
  const body = profile
    ? Buffer.concat([Buffer.of(METHODS.profile), profile.body.subarray(1)])
    : enumerated(colour);
  const [first, ...others] = boxes.filter(({ name }) => name !== 'colr');
  return [...(first ? [first] : []), { name: 'colr', body }, ...others];
}

function enumerated(colour: number): Buffer {
  return Buffer.from([METHODS.enumerated, 0, 0, 0, 0, 0, colour]);
}

/** Returns for each channel its number, its type (0 for colour, 1 for alpha), and its colour (0 means all). */
function channelDefinitions(components: number): Buffer {
  const alpha = components - 1;
  const rows = Array.from({ length: components }, (_, at) => (at === alpha ? [at, 1, 0] : [at, 0, at + 1]));
  const numbers = [components, ...rows.flat()];
  const body = Buffer.alloc(numbers.length * 2);
  for (const [at, number] of numbers.entries()) body.writeUInt16BE(number, at * 2);
  return body;
}
