/** @module JPEG XL files that take minutes to decode, and headers of others. */

/** JPEG XL of 512 × 512 pixels with four frames of no duration, encoded by cjxl 0.7 without loss. */
const FOUR_FRAMES = Buffer.from(
  [
    '/wr4H0EAFhSXBAgIgAAAVAAAAAAIgAAIgABLEqVCBVJgw8YYTNoYHHsAAAAmAAADNlcCoKuHF5T6mYORHGHihJ+1cNqdc0g6/mDk',
    '/DO8NAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0AzZXAqCrhxeU+pmDkRxh4oSftXDanXNIOv5g5PwzvDQDNlcCoKuH',
    'F5T6mYORHGHihJ+1cNqdc0g6/mDk/DO8NAgIMhECAEgAAAAACIAACIAASxKlQgVSYMPGGMzdPQAAABMAA0RLApCCAiE9yZBjDtcq',
    'A8ybQzz50wdnHPtiaDLqBSsDREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKwNESwKQggIhPcmQYw7XKgPMm0M8+dMHZxz7',
    'Ymgy6gUrA0RLApCCAiE9yZBjDtcqA8ybQzz50wdnHPtiaDLqBSsICDIRAgBUAAAAAAiAAAiAAEsSpUIFUmDDxhhM2hgcewAAACYA',
    'AAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0AzZXAqCrhxeU+pmDkRxh4oSftXDanXNIOv5g5PwzvDQDNlcCoKuHF5T6',
    'mYORHGHihJ+1cNqdc0g6/mDk/DO8NAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0CAgyEQEASAAAAAAIgAAIgABLEqVC',
    'BVJgw8YYzN09AAAAEwADREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKwNESwKQggIhPcmQYw7XKgPMm0M8+dMHZxz7Ymgy',
    '6gUrA0RLApCCAiE9yZBjDtcqA8ybQzz50wdnHPtiaDLqBSsDREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKw==',
  ].join(''),
  'base64',
);
/** Offset and length of the second and third frame together. */
const MIDDLE_AT = 177;
const MIDDLE_BYTES = 329;

/**
 * Returns an animation whose frames have no duration. A decoder decodes all of them, and shows the last one. 1000 frames
 * have 165 KB, and take djxl 0.7 half a minute of processor time and 36 MB of memory.
 *
 * @param frames an even number of at least four
 */
export function slowJxl(frames: number): Buffer {
  const middle = FOUR_FRAMES.subarray(MIDDLE_AT, MIDDLE_AT + MIDDLE_BYTES);
  const more = Array.from({ length: (frames - 4) / 2 }, () => middle);
  return Buffer.concat([FOUR_FRAMES.subarray(0, MIDDLE_AT), ...more, FOUR_FRAMES.subarray(MIDDLE_AT)]);
}

/** Encodes the header of a JPEG XL without a frame: values and their numbers of bits (ISO/IEC 18181-1). */
export function jxlHeader(fields: readonly (readonly [value: number, bits: number])[]): Buffer {
  const bits = fields.flatMap(([value, count]) =>
    Array.from({ length: count }, (_, bit) => (value >> bit) & 1),
  );
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8) + 64);
  for (const [at, bit] of bits.entries()) bytes[at >> 3] = (bytes[at >> 3] as number) | (bit << (at & 7));
  return Buffer.concat([Buffer.from([0xff, 0x0a]), bytes]);
}
