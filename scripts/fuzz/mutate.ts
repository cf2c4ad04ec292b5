/** @module Damages files like disks, networks and faulty programs. */

/** Returns a whole number from 0 to `limit` − 1. */
export type Pick = (limit: number) => number;

/** Number of bytes at the start of a file that usually contain headers and tables. */
const HEADER_BYTES = 1024;
/** Values that break lengths and offsets. */
const EXTREMES = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff];

type Mutation = (bytes: Buffer, pick: Pick) => Buffer;

const inHeader = (bytes: Buffer, pick: Pick): number => pick(Math.min(HEADER_BYTES, bytes.length));

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, pick) {
    const at = inHeader(bytes, pick);
    bytes[at] = (bytes[at] as number) ^ (1 << pick(8));
    return bytes;
  },
  function flipBitAnywhere(bytes, pick) {
    const at = pick(bytes.length);
    bytes[at] = (bytes[at] as number) ^ (1 << pick(8));
    return bytes;
  },
  function setNumber(bytes, pick) {
    const at = inHeader(bytes, pick);
    const value = EXTREMES[pick(EXTREMES.length)] as number;
    if (at + 4 > bytes.length) return bytes;
    if (pick(2) === 0) bytes.writeUInt32BE(value, at);
    else bytes.writeUInt32LE(value, at);
    return bytes;
  },
  function addToByte(bytes, pick) {
    const at = inHeader(bytes, pick);
    bytes[at] = ((bytes[at] as number) + 1 + pick(3)) & 255;
    return bytes;
  },
  (bytes, pick) => bytes.subarray(0, 1 + pick(bytes.length)), // cut
  function repeatPart(bytes, pick) {
    const at = pick(bytes.length);
    const part = bytes.subarray(at, at + 1 + pick(64));
    return Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at)]);
  },
];

/** Returns a copy with one to three mutations. */
export function mutate(original: Buffer, pick: Pick): Buffer {
  let bytes: Buffer = Buffer.from(original);
  for (let count = 1 + pick(3); count > 0; count -= 1)
    bytes = (MUTATIONS[pick(MUTATIONS.length)] as Mutation)(bytes, pick);
  return bytes;
}
