/** @module Reads the image file directories (IFDs) of a TIFF, which most browsers cannot decode. */

/** Length of an IFD entry in bytes. */
const ENTRY_BYTES = 12;
/** Field type of a 32-bit unsigned integer. */
const LONG = 4;

/**
 * Returns the first value of each tag, for each IFD in order; none if the file is not a TIFF.
 *
 * @throws {RangeError} if the file is truncated
 */
export async function* readIfds(file: Blob): AsyncGenerator<ReadonlyMap<number, number>> {
  const read = async (from: number, bytes: number) =>
    new DataView(await file.slice(from, from + bytes).arrayBuffer());
  const header = await read(0, 8);
  const littleEndian = header.getUint16(0) === 0x4949;
  if (!littleEndian && header.getUint16(0) !== 0x4d4d) return;
  if (header.getUint16(2, littleEndian) !== 42) return;
  let at = header.getUint32(4, littleEndian);
  while (at !== 0) {
    const end = (await read(at, 2)).getUint16(0, littleEndian) * ENTRY_BYTES;
    const entries = await read(at + 2, end + 4);
    const values = new Map<number, number>();
    for (let entry = 0; entry < end; entry += ENTRY_BYTES) {
      const isLong = entries.getUint16(entry + 2, littleEndian) === LONG;
      const value = isLong
        ? entries.getUint32(entry + 8, littleEndian)
        : entries.getUint16(entry + 8, littleEndian);
      values.set(entries.getUint16(entry, littleEndian), value);
    }
    yield values;
    at = entries.getUint32(end, littleEndian);
  }
}
