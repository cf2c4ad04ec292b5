/**
 * @module The file kinds of BMP Suite (https://entropymine.com/jason/bmpsuite), "good" and
 * "questionable", generated, without those of fixtures/traps. Each file is red in its left half and
 * blue in its right half.
 */

import { type Bitmap, bmp, packRows } from '../../scripts/fixtures/bmp-writer.ts';
import {
  BLUE,
  gaps,
  type Halves,
  HEIGHT,
  indexed,
  masked,
  number,
  RED,
  rowsOf,
  runs,
  trueColour,
} from '../../scripts/fixtures/edge-cases/bitmaps.ts';

interface BmpKind {
  /** Names of the files of this kind in BMP Suite. */
  readonly names: string;
  readonly make: () => Buffer | Promise<Buffer>;
  /** Colours of the left and of the right half; undefined if imagemill rejects the file. */
  readonly shows?: Halves;
  /** Set if Chromium shows another image, because the file leaves it open. */
  readonly unlikeChromium?: true;
}

/** Offsets in a file with a header of 40 bytes or more. */
const AT = {
  pixels: 10,
  corePlanes: 22,
  planes: 26,
  pixelsPerMetre: 38,
  colours: 46,
  colourSpace: 70,
} as const;
const BLACK = [0, 0, 0] as const;
const PLAIN: Halves = [RED, BLUE];
const FADED: Halves = [RED, [...BLUE, 0]];
const CLEAR: Halves = [
  [...RED, 0],
  [...BLUE, 0],
];
const [RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK] = [0xff0000, 0xff00, 0xff, 0xff000000];
const RGBA = [RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK];
const LINKED_PROFILE = 0x4c494e4b;

const palette = (length: number): (readonly number[])[] => [RED, BLUE, ...Array(length - 2).fill(BLACK)];

const plain = (names: string, bitmap: Bitmap, shows: Halves = PLAIN): BmpKind => ({
  names,
  shows,
  make: async () => bmp(bitmap),
});

/** A bitmap with bit masks. The colours are what is left of them in so few bits. */
const withMasks = (names: string, ...args: Parameters<typeof masked>): BmpKind => ({
  names,
  ...masked(...args),
});

/** A kind that ImageMagick misreads or rejects, so that imagemill rejects it. */
const rejected = ({ names, make }: BmpKind): BmpKind => ({ names, make });

/** A file that is changed after it was encoded. */
const patched = (names: string, bitmap: Bitmap, patch: (file: Buffer) => Buffer | number): BmpKind => ({
  names,
  shows: PLAIN,
  async make() {
    const file = bmp(bitmap);
    const result = patch(file);
    return Buffer.isBuffer(result) ? result : file;
  },
});

const inThirtyTwoBits = (fill: number): Bitmap => ({
  ...trueColour(),
  bits: 32,
  pixels: packRows(rowsOf(number(RED) + fill, number(BLUE) + fill), 32),
});

const half = (pixels: Buffer): Buffer => pixels.subarray(0, pixels.length / 2);

/** Files that every viewer shows. */
export const GOOD: readonly BmpKind[] = [
  plain('pal4rle', indexed(4, { compression: 2, pixels: runs([0x00], [0x11]) })),
  plain('pal8', indexed(8, { palette: palette(252) })),
  patched('pal8-0', indexed(8, { palette: palette(256) }), (file) => file.writeUInt32LE(0, AT.colours)),
  patched('pal8nonsquare', indexed(8), (file) => {
    file.writeUInt32LE(3938, AT.pixelsPerMetre);
    return file.writeUInt32LE(1969, AT.pixelsPerMetre + 4);
  }),
  plain('pal8v4', indexed(8, { header: 108 })),
  plain('pal8v5', indexed(8, { header: 124 })),
  plain('pal8w125', indexed(8, { width: 21, pixels: packRows(rowsOf(0, 1, 21), 8) })), // rows with padding
  withMasks('rgb16bfdef', 16, [0x7c00, 0x3e0, 0x1f]),
  withMasks('rgb16-565', 16, [0xf800, 0x7e0, 0x1f]),
  plain('rgb24', trueColour()),
  plain('rgb24pal', trueColour({ palette: palette(256) })),
  plain('rgb32', inThirtyTwoBits(0)),
  withMasks('rgb32bf', 32, [0xff000000, 0xff000, 0xff]),
  withMasks('rgb32bfdef', 32, [RED_MASK, GREEN_MASK, BLUE_MASK]),
];

/** Files that some viewers show. */
export const QUESTIONABLE: readonly BmpKind[] = [
  { names: 'pal1huffmsb', make: async () => bmp(indexed(1, { header: 64, compression: 3 })) },
  { ...plain('pal1p1', indexed(1, { palette: [RED] }), [RED, RED]), unlikeChromium: true },
  rejected(plain('pal4rlecut', indexed(4, { compression: 2, pixels: half(runs([0x00], [0x11])) }))),
  {
    ...plain('pal4rletrns', indexed(4, { compression: 2, pixels: gaps(0) }), [RED, RED]),
    unlikeChromium: true,
  },
  patched('pal8offs', indexed(8), (file) => {
    const at = file.readUInt32LE(AT.pixels);
    file.writeUInt32LE(at + 100, AT.pixels);
    return Buffer.concat([file.subarray(0, at), Buffer.alloc(100, 0xaa), file.subarray(at)]);
  }),
  patched('pal8os2-sz, pal8os2-hs', indexed(8, { header: 12, palette: palette(256) }), (file) =>
    file.writeUInt32LE(26, 2),
  ),
  rejected(plain('pal8os2sp', indexed(8, { header: 12, palette: palette(2) }))),
  rejected(plain('pal8os2v2-16', indexed(8, { header: 16, palette: palette(256) }))),
  patched('pal8os2v2-40sz, pal8os2v2-sz', indexed(8), (file) => file.writeUInt32LE(14, 2)),
  patched('badplanes', indexed(1), (file) => file.writeUInt16LE(0, AT.planes)),
  patched('badplanes with a header of OS/2', indexed(8, { header: 12, palette: palette(256) }), (file) =>
    file.writeUInt16LE(7, AT.corePlanes),
  ),
  plain('pal8oversizepal', indexed(8, { palette: palette(300) })),
  rejected(withMasks('rgba16-4444', 16, [0xf00, 0xf0, 0x0f, 0xf000], { header: 124 }, FADED)),
  rejected(withMasks('rgba16-5551', 16, [0x7c00, 0x3e0, 0x1f, 0x8000], { header: 124 }, FADED)),
  { names: 'rgb24jpeg', make: async () => bmp(trueColour({ compression: 4 })) },
  { names: 'rgb24png', make: async () => bmp(trueColour({ compression: 5 })) },
  patched('rgb24lprof', trueColour({ header: 124 }), (file) =>
    file.writeUInt32LE(LINKED_PROFILE, AT.colourSpace),
  ),
  rejected(
    plain('rgb24rle24', {
      ...trueColour({ header: 64, compression: 4 }),
      pixels: runs([...RED].reverse(), [...BLUE].reverse()),
    }),
  ),
  withMasks('rgb32-111110', 32, [0xffe00000, 0x1ffc00, 0x3ff]),
  withMasks('rgb32-xbgr', 32, [0xff, 0xff00, 0xff0000]),
  plain('rgb32fakealpha', inThirtyTwoBits(0x80000000)),
  rejected(withMasks('rgb32h52', 32, [RED_MASK, GREEN_MASK, BLUE_MASK], { header: 52 })),
  withMasks('rgba32', 32, RGBA, { header: 124 }, FADED),
  withMasks('rgba32-1', 32, [BLUE_MASK, GREEN_MASK, RED_MASK, ALPHA_MASK], { header: 108 }, FADED),
  rejected(withMasks('rgba32-81284', 32, [0xff000000, 0xfff000, 0xff0, 0xf], { header: 124 }, FADED)),
  withMasks('rgba32h56', 32, RGBA, { header: 56 }, FADED),
  // Not in BMP Suite, as all after it.
  ...([56, 108, 124] as const).map((header) =>
    withMasks(`alpha of 0 everywhere in a header of ${header} bytes`, 32, RGBA, { header }, CLEAR),
  ),
  ...[1, 300, 2 ** 24].map((colours) =>
    patched(`true colour that states a palette of ${colours} colours`, trueColour(), (file) =>
      file.writeUInt32LE(colours, AT.colours),
    ),
  ),
  // Chromium applies the alpha mask although the compression is BI_RGB.
  withMasks('rgba32rgb', 32, RGBA, { header: 108, compression: 0 }, FADED),
];

/** Row of the image at which the kinds are checked: cut files have only the lower half. */
export const CHECKED_ROW = HEIGHT - 2;
