/** @module Reads the copyright of IPTC, and writes IPTC with nothing else (IIM 4.2, 1.5, 5, 6). */
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

/**
 * Signature and number of an image resource of Photoshop that contains IPTC (Photoshop file format,
 * "Image Resource Blocks").
 */
const SIGNATURE = '8BIM';
const RESOURCE = 0x0404;

/** Yields the image resources in a block of them. */
export function* imageResources(data: Buffer): Generator<{ readonly number: number; readonly body: Buffer }> {
  for (let at = 0; at + 12 <= data.length && data.toString('latin1', at, at + 4) === SIGNATURE; ) {
    const nameBytes = ((data[at + 6] as number) + 2) & ~1; // its length, and padding
    const lengthAt = at + 6 + nameBytes;
    if (lengthAt + 4 > data.length) break;
    const length = data.readUInt32BE(lengthAt);
    const start = lengthAt + 4;
    yield { number: data.readUInt16BE(at + 4), body: data.subarray(start, start + length) };
    at = start + length + (length % 2);
  }
}

/** Finds IPTC among image resources. Returns data without resources as it is. */
function findInResources(data: Buffer): Buffer {
  if (data.toString('latin1', 0, 4) !== SIGNATURE) return data;
  for (const { number, body } of imageResources(data)) if (number === RESOURCE) return body;
  return Buffer.alloc(0);
}

/** Yields the datasets of the record with the fields, also of IPTC in resources of Photoshop. */
export function* iptcDatasets(block: Buffer): Generator<{ readonly dataset: number; readonly body: Buffer }> {
  const data = findInResources(block);
  for (let at = 0; data[at] === MARKER && at + HEAD_BYTES <= data.length; ) {
    const length = data.readUInt16BE(at + 3);
    if (length & EXTENDED) break;
    const start = at + HEAD_BYTES;
    const [record, dataset = 0] = data.subarray(at + 1);
    if (record === APPLICATION) yield { dataset, body: data.subarray(start, start + length) };
    at = start + length;
  }
}

/** Reads the fields of IPTC. */
export function readIptcTexts(block: Buffer): FieldText[] {
  const found: FieldText[] = [];
  for (const { dataset, body } of iptcDatasets(block)) {
    const { field } = FIELDS.find((one) => one.dataset === dataset) ?? {};
    if (field) found.push({ field, text: decodeText(body) });
    if (found.length > MAX_TEXTS) break;
  }
  return found;
}

const encodeDataset = (record: number, dataset: number, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from([MARKER, record, dataset]), bigEndian(value.length, 2), value]);

/** First datasets of every file: the encoding UTF-8 (1:90), and the record's version (2:00). */
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
