/** @module Reads the copyright of IPTC, and writes IPTC with nothing else (IIM 4.2, sections 1.5, 5 and 6). */
import { bigEndian } from '../containers/file.ts';
import { decodeText, type Field, type FieldText, IPTC_FIELDS, MAX_TEXTS } from './fields.ts';

const FIELDS = Object.entries(IPTC_FIELDS).map(([field, { dataset }]) => ({
  field: field as Field,
  dataset,
}));

/** First byte of a dataset. The numbers of its record and itself, and its length follow. */
const MARKER = 0x1c;
const HEAD_BYTES = 5;
/** Bit of lengths that are themselves stated with a length. No text is that long. */
const EXTENDED = 0x8000;
/** Number of the record with the fields, and that of the record with their encoding. */
const APPLICATION = 2;
const ENVELOPE = 1;

/** Signature and number of an image resource of Photoshop that contains IPTC (Photoshop file format, "Image Resource Blocks"). */
const SIGNATURE = '8BIM';
const RESOURCE = 0x0404;

/** Finds IPTC among image resources. Returns data without resources as it is. */
function findInResources(data: Buffer): Buffer {
  if (data.toString('latin1', 0, 4) !== SIGNATURE) return data;
  for (let at = 0; at + 12 <= data.length && data.toString('latin1', at, at + 4) === SIGNATURE; ) {
    const nameBytes = ((data[at + 6] as number) + 2) & ~1; // its length, and padding
    const lengthAt = at + 6 + nameBytes;
    if (lengthAt + 4 > data.length) break;
    const length = data.readUInt32BE(lengthAt);
    const start = lengthAt + 4;
    if (data.readUInt16BE(at + 4) === RESOURCE) return data.subarray(start, start + length);
    at = start + length + (length % 2);
  }
  return Buffer.alloc(0);
}

/** Reads the fields of IPTC, which can be in image resources of Photoshop. */
export function readIptcTexts(block: Buffer): FieldText[] {
  const data = findInResources(block);
  const found: FieldText[] = [];
  for (let at = 0; data[at] === MARKER && at + HEAD_BYTES <= data.length && found.length <= MAX_TEXTS; ) {
    const length = data.readUInt16BE(at + 3);
    if (length & EXTENDED) break;
    const start = at + HEAD_BYTES;
    const [record, dataset] = data.subarray(at + 1);
    const { field } = FIELDS.find((one) => one.dataset === dataset) ?? {};
    if (record === APPLICATION && field)
      found.push({ field, text: decodeText(data.subarray(start, start + length)) });
    at = start + length;
  }
  return found;
}

/** Encodes a dataset. */
const encodeDataset = (record: number, dataset: number, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from([MARKER, record, dataset]), bigEndian(value.length, 2), value]);

/** The datasets that every file starts with: the encoding UTF-8 (1:90), and the version of the record (2:00). */
const FIRST = [
  encodeDataset(ENVELOPE, 90, Buffer.from('\x1b%G', 'latin1')),
  encodeDataset(APPLICATION, 0, bigEndian(4, 2)),
];

/** Writes IPTC with the fields; undefined if there are none. */
export function writeIptc(texts: readonly FieldText[]): Buffer | undefined {
  const datasets = FIELDS.flatMap(({ field, dataset }) =>
    texts
      .filter((one) => one.field === field)
      .map(({ text = '' }) => encodeDataset(APPLICATION, dataset, Buffer.from(text))),
  );
  return datasets.length > 0 ? Buffer.concat([...FIRST, ...datasets]) : undefined;
}

/** Encodes IPTC as an image resource, without a name. */
export const toResource = (iptc: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(SIGNATURE, 'latin1'),
    bigEndian(RESOURCE, 2),
    bigEndian(0, 2),
    bigEndian(iptc.length, 4),
    iptc,
    Buffer.alloc(iptc.length % 2),
  ]);
