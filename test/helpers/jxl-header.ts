/**
 * Fields of the header of an image of 120 × 80 pixels with 8 bits per channel, up to its extra
 * channels.
 */
const SCENE_FIELDS = [
  [1, 1],
  [9, 5],
  [4, 3], // sides are multiples of 8: height 80, and a width of 3 / 2

  [0, 1],
  [0, 1],
  [0, 3],
  [1, 1],
  [1, 2], // no defaults, nothing extra, 8 bits, 16-bit buffers suffice, one channel
] as const;
/** Fields after the extra channels: no XYB, sRGB, no extensions, and the default transform. */
const LAST_FIELDS = [
  [0, 1],
  [1, 1],
  [0, 2],
  [1, 1],
] as const;

/**
 * Returns a copy of a JPEG XL of 120 × 80 pixels with 8 bits per channel, in sRGB, encoded by cjxl
 * without loss, which states that its colours are multiplied by its alpha.
 */
export function withAssociatedAlpha(file: Buffer): Buffer {
  const before = jxlHeader([...SCENE_FIELDS, [1, 1], ...LAST_FIELDS]).subarray(0, 5);
  if (!file.subarray(0, 5).equals(before)) throw new Error('the header has other fields');
  // Not the default alpha channel: type 0, 8 bits, not smaller than the image, without a name, and
  // associated.
  const channel = [
    [0, 1],
    [0, 2],
    [0, 3],
    [0, 2],
    [0, 2],
    [1, 1],
  ] as const;
  return Buffer.concat([
    jxlHeader([...SCENE_FIELDS, ...channel, ...LAST_FIELDS]).subarray(0, 7),
    file.subarray(5),
  ]);
}

/**
 * Encodes the header of a JPEG XL without a frame: values and their numbers of bits (ISO/IEC
 * 18181-1).
 */
export function jxlHeader(fields: readonly (readonly [value: number, bits: number])[]): Buffer {
  const bits = fields.flatMap(([value, count]) =>
    Array.from({ length: count }, (_, bit) => (value >> bit) & 1),
  );
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8) + 64);
  for (const [at, bit] of bits.entries()) bytes[at >> 3] = (bytes[at >> 3] as number) | (bit << (at & 7));
  return Buffer.concat([Buffer.from([0xff, 0x0a]), bytes]);
}
