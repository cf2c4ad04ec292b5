/** @module Reads the size of TIFFs, which browsers cannot decode. */

/** Tags of the image file directory (IFD). */
const [WIDTH, HEIGHT, ORIENTATION] = [256, 257, 274];
/** Length of an IFD entry in bytes. */
const ENTRY_BYTES = 12;
/** Field type of a 32-bit unsigned integer. */
const LONG = 4;
/** First orientation, 5 to 8, that swaps width and height. */
const FIRST_SWAPPED_ORIENTATION = 5;

/**
 * Reads the size of a TIFF from its first IFD.
 *
 * @returns the size in pixels after orientation, or null if the file is not a TIFF
 * @throws {RangeError} if the file is truncated
 */
export async function readTiffSize(file: Blob): Promise<{ width: number; height: number } | null> {
  const readBytes = async (from: number, bytes: number) =>
    new DataView(await file.slice(from, from + bytes).arrayBuffer());
  const header = await readBytes(0, 8);
  const littleEndian = header.getUint16(0) === 0x4949;
  if (!littleEndian && header.getUint16(0) !== 0x4d4d) return null;
  if (header.getUint16(2, littleEndian) !== 42) return null;
  const start = header.getUint32(4, littleEndian);
  const count = (await readBytes(start, 2)).getUint16(0, littleEndian);
  const entries = await readBytes(start + 2, count * ENTRY_BYTES);
  const values = new Map<number, number>();
  for (let at = 0; at < count * ENTRY_BYTES; at += ENTRY_BYTES) {
    const long = entries.getUint16(at + 2, littleEndian) === LONG;
    values.set(
      entries.getUint16(at, littleEndian),
      long ? entries.getUint32(at + 8, littleEndian) : entries.getUint16(at + 8, littleEndian),
    );
  }
  const [width, height] = [values.get(WIDTH), values.get(HEIGHT)];
  if (!width || !height) return null;
  return (values.get(ORIENTATION) ?? 1) < FIRST_SWAPPED_ORIENTATION
    ? { width, height }
    : { width: height, height: width };
}
