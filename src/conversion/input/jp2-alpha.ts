/**
 * @module Declares the alpha channel of a JPEG 2000. Writers such as Pillow omit the channel definition, and other
 * decoders assume that the last channel is alpha. ImageMagick 7 ignores the channel, or takes it for a colour.
 */
import { createWriteStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { InputType } from '../../formats.ts';
import { type Jp2Layout, readJp2Layout } from '../inspect/jp2.ts';
import { WindowReader } from '../inspect/window-reader.ts';

/** Enumerated colour spaces (EnumCS; ISO/IEC 15444-1, table I.10) by number of channels with alpha. */
const COLOURS: Readonly<Record<number, { readonly colourSpace: number }>> = {
  2: { colourSpace: 17 }, // grey
  4: { colourSpace: 16 }, // sRGB
};
const CMYK = 12;

/**
 * Inserts a channel definition box into the file at `path` if it is missing.
 *
 * @returns always `jp2`
 * @throws {HeaderTooComplexError} if the file takes too many reads
 */
export async function declareAlpha(path: string): Promise<InputType> {
  const file = await open(path);
  try {
    const layout = await readJp2Layout(new WindowReader(file));
    const insertion = insertionFor(layout);
    if (!insertion) return 'jp2';
    const { start, length } = layout.header ?? { start: 0, length: 0 };
    const before = Buffer.alloc(start + length);
    await file.read(before, 0, before.length, 0);
    if (layout.header) before.writeUInt32BE(length + insertion.length, start);
    const rest = file.createReadStream({ start: before.length, autoClose: false });
    const whole = async function* () {
      yield Buffer.concat([before, insertion]);
      yield* rest;
    };
    await pipeline(whole, createWriteStream(`${path}.named`, { flags: 'wx', mode: 0o600 }));
    await rename(`${path}.named`, path);
    return 'jp2';
  } finally {
    await file.close();
  }
}

/** Maximum size of a header box to change. Only headers with large profiles, or malicious ones, are longer. */
const MAX_HEADER_BYTES = 4 * 1024 ** 2;

/** Returns the boxes to append to the header, or to insert before a bare codestream; undefined if none is missing. */
function insertionFor({
  components = 0,
  channelsDefined,
  colourSpace,
  codestream,
  header,
  image,
}: Jp2Layout): Buffer | undefined {
  const colours = COLOURS[components];
  if (!colours || channelsDefined || colourSpace === CMYK || codestream === undefined) return undefined;
  const definition = box('cdef', channelDefinitions(components));
  if (header) {
    const fits = header.start + header.length <= Math.min(codestream, MAX_HEADER_BYTES);
    return fits ? definition : undefined;
  }
  const { width = 0, height = 0, deep } = image;
  const imageHeader = Buffer.alloc(14);
  imageHeader.writeUInt32BE(height, 0);
  imageHeader.writeUInt32BE(width, 4);
  imageHeader.writeUInt16BE(components, 8);
  imageHeader.set([deep ? 15 : 7, 7, 0, 0], 10); // bits minus 1; wavelet compression; known colour space; no intellectual property
  const colour = Buffer.alloc(7);
  colour[0] = 1;
  colour.writeUInt32BE(colours.colourSpace, 3);
  return Buffer.concat([
    box('jP  ', Buffer.from('\r\n\x87\n', 'latin1')),
    box('ftyp', Buffer.from('jp2 \0\0\0\0jp2 ', 'latin1')),
    box('jp2h', Buffer.concat([box('ihdr', imageHeader), box('colr', colour), definition])),
    Buffer.from('\0\0\0\0jp2c', 'latin1'), // length 0: up to the end of the file
  ]);
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

function box(name: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + body.length);
  head.write(name, 4, 'latin1');
  return Buffer.concat([head, body]);
}
