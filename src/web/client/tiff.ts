/** How large a TIFF is, which browsers cannot tell: its first directory says so. */

const [WIDTH, HEIGHT, ORIENTATION] = [256, 257, 274];
const ENTRY_BYTES = 12;
const LONG = 4;
/** From here on orientations lie on their side. */
const MAX_PLAUSIBLE_SIDE = 5;

/** @returns pixels as they are seen, or null when it is no TIFF. Rejects with a RangeError when it is cut off. */
export async function sizeOfTiff(file: Blob): Promise<{ width: number; height: number } | null> {
  const view = async (from: number, bytes: number) =>
    new DataView(await file.slice(from, from + bytes).arrayBuffer());
  const head = await view(0, 8);
  const little = head.getUint16(0) === 0x4949;
  if (!little && head.getUint16(0) !== 0x4d4d) return null;
  if (head.getUint16(2, little) !== 42) return null;
  const start = head.getUint32(4, little);
  const count = (await view(start, 2)).getUint16(0, little);
  const entries = await view(start + 2, count * ENTRY_BYTES);
  const values = new Map<number, number>();
  for (let at = 0; at < count * ENTRY_BYTES; at += ENTRY_BYTES) {
    const long = entries.getUint16(at + 2, little) === LONG;
    values.set(
      entries.getUint16(at, little),
      long ? entries.getUint32(at + 8, little) : entries.getUint16(at + 8, little),
    );
  }
  const [width, height] = [values.get(WIDTH), values.get(HEIGHT)];
  if (!width || !height) return null;
  return (values.get(ORIENTATION) ?? 1) < MAX_PLAUSIBLE_SIDE
    ? { width, height }
    : { width: height, height: width };
}
