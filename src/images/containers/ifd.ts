/** @module Image file directories (IFDs) of TIFF and EXIF (TIFF 6.0, section 2). */
import type { ByteReader } from './file.ts';

/** Maximum number of tags to read per directory; real files have fewer. */
export const MAX_TAGS = 200;
/** Maximum number of directories to read: one more than the largest MAX_FRAMES. */
const MAX_DIRECTORIES = 10_001;

/** Tags (TIFF 6.0, appendix A; EXIF 2.32, 4.6). */
export const TAG = {
  newSubfileType: 254,
  subfileType: 255,
  width: 256,
  height: 257,
  bitsPerSample: 258,
  compression: 259,
  photometric: 262,
  fillOrder: 266,
  strips: 273,
  orientation: 274,
  samplesPerPixel: 277,
  rowsPerStrip: 278,
  stripBytes: 279,
  minSampleValue: 280,
  maxSampleValue: 281,
  resolutionX: 282,
  resolutionY: 283,
  planarConfiguration: 284,
  resolutionUnit: 296,
  pageNumber: 297,
  predictor: 317,
  colourMap: 320,
  tileWidth: 322,
  tiles: 324,
  subDirectories: 330,
  inkSet: 332,
  inkNames: 333,
  numberOfInks: 334,
  extraSamples: 338,
  sampleFormat: 339,
  smallestSample: 340,
  largestSample: 341,
  thumbnail: 513,
  thumbnailLength: 514,
  yCbCrCoefficients: 529,
  yCbCrSubsampling: 530,
  xmp: 700,
  iptc: 33723,
  exif: 34665,
  profile: 34675,
  gps: 34853,
  exifWidth: 40962,
  exifHeight: 40963,
  interoperability: 40965,
} as const;

export interface IfdEntry {
  readonly entryAt: number;
  /** The first number if the values fit into the entry, or else the offset of the values. */
  readonly value: number;
  readonly count: number;
  readonly at: number;
  /** Bytes per number, or of the value field for types that are not whole numbers. */
  readonly width: number;
}

/** The entries of a directory by tag number. */
export type Tags = ReadonlyMap<number, IfdEntry>;

interface Directory {
  readonly offset: number;
  /** Stated number of entries. */
  readonly count: number;
  /** Offset of the next directory; 0 or undefined if there is none. */
  readonly next: number | undefined;
}

/** Bytes per number by tag type: BYTE, ASCII, SHORT, LONG, UNDEFINED, and BigTIFF's LONG8. */
const NUMBER_BYTES: Readonly<Record<number, 1 | 2 | 4 | 8>> = { 1: 1, 2: 1, 3: 2, 4: 4, 7: 1, 16: 8 };

/** Bytes of the fields. BigTIFF differs only in these (Adobe, TIFF Technote 3, 2007). */
interface IfdLayout {
  readonly count: 2 | 8;
  readonly entry: 12 | 20;
  readonly offset: 4 | 8;
  readonly firstAt: 4 | 8;
}
const CLASSIC: IfdLayout = { count: 2, entry: 12, offset: 4, firstAt: 4 };
const BIG: IfdLayout = { count: 8, entry: 20, offset: 8, firstAt: 8 };
/** Layouts by the version in the header: that of TIFF 6.0 and EXIF, and that of BigTIFF. */
const LAYOUTS: Readonly<Record<number, IfdLayout>> = { 42: CLASSIC, 43: BIG };

/** Reads the numbers and directories of a TIFF, or of EXIF. */
export class TiffReader {
  readonly bytes: ByteReader;
  readonly layout: IfdLayout;
  readonly #isBigEndian: boolean;

  /** @param start first byte of the byte order, `M` for the most significant byte first */
  constructor(bytes: ByteReader, start: number | undefined, layout = CLASSIC) {
    this.bytes = bytes;
    this.layout = layout;
    this.#isBigEndian = start === 0x4d;
  }

  /** Opens a TIFF or BigTIFF. Returns undefined for another file. */
  static async open(bytes: ByteReader): Promise<TiffReader | undefined> {
    const [start] = await bytes.read(0, 1);
    const layout = LAYOUTS[(await new TiffReader(bytes, start).number(2, 2)) ?? 0];
    return layout && new TiffReader(bytes, start, layout);
  }

  numberIn(buffer: Buffer, at: number, length: number): number {
    if (length === 8)
      return Number(this.#isBigEndian ? buffer.readBigUInt64BE(at) : buffer.readBigUInt64LE(at));
    return this.#isBigEndian ? buffer.readUIntBE(at, length) : buffer.readUIntLE(at, length);
  }

  /** Reads an unsigned number of `length` bytes; undefined past the end of the file. */
  async number(at: number, length: number): Promise<number | undefined> {
    const raw = await this.bytes.read(at, length);
    return raw.length < length ? undefined : this.numberIn(raw, 0, length);
  }

  encode(value: number, length: number): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    const cut = bytes.subarray(0, length);
    return this.#isBigEndian ? cut.reverse() : cut;
  }

  first(): Promise<number | undefined> {
    return this.number(this.layout.firstAt, this.layout.offset);
  }

  /** Yields the directories in the order of the file, each once. */
  async *directories(): AsyncGenerator<Directory> {
    const { count: countBytes, entry, offset: offsetBytes } = this.layout;
    const visited = new Set<number>();
    let offset = await this.first();
    while (offset && !visited.has(offset) && visited.size < MAX_DIRECTORIES) {
      visited.add(offset);
      const count = (await this.number(offset, countBytes)) ?? 0;
      const next = await this.number(offset + countBytes + count * entry, offsetBytes);
      yield { offset, count, next };
      offset = next;
    }
  }

  /** Reads the tags of the directory at `from`: at most {@link MAX_TAGS}. */
  async tags(from: number): Promise<Tags> {
    const { layout } = this;
    const start = from + layout.count;
    const entries = Math.min((await this.number(from, layout.count)) ?? 0, MAX_TAGS);
    // Read the directory at once: it has a few hundred bytes, and a file may have thousands of
    // directories.
    const directory = await this.bytes.read(start, entries * layout.entry);
    const tags = new Map<number, IfdEntry>();
    for (let at = 0; at + layout.entry <= directory.length; at += layout.entry) {
      const field = (from: number, length: number): number => this.numberIn(directory, at + from, length);
      const count = field(4, layout.offset);
      const width = NUMBER_BYTES[field(2, 2)] ?? layout.offset;
      const isInline = width * count <= layout.offset;
      const value = field(4 + layout.offset, isInline ? width : layout.offset);
      const entryAt = start + at;
      tags.set(field(0, 2), {
        entryAt,
        value,
        count,
        at: isInline ? entryAt + 4 + layout.offset : value,
        width,
      });
    }
    return tags;
  }

  /**
   * Reads the first values of a tag of the type RATIONAL, at most `max`: two numbers of four bytes
   * each. Those past the end of the file are left out.
   *
   * @param start offset of the header, from which offsets in EXIF count
   */
  async fractions({ at, value, count }: IfdEntry, max: number, start = 0): Promise<number[]> {
    // The entry of a TIFF has no space for both numbers, that of a BigTIFF has.
    const from = this.layout === BIG ? at : start + value;
    const raw = await this.bytes.read(from, 8 * Math.min(count, max));
    return Array.from(
      { length: Math.floor(raw.length / 8) },
      (_, index) => this.numberIn(raw, 8 * index, 4) / this.numberIn(raw, 8 * index + 4, 4),
    );
  }

  /** Reads the first numbers of a tag, at most `max`. */
  async numbers({ value, count, at, width }: IfdEntry, max: number): Promise<number[]> {
    if (count === 1) return [value];
    const raw = await this.bytes.read(at, width * Math.min(count, max));
    return Array.from({ length: Math.floor(raw.length / width) }, (_, index) =>
      this.numberIn(raw, index * width, width),
    );
  }
}
