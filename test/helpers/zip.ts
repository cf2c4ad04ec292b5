import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { fromBufferPromise } from 'yauzl';
import { makeTempDir } from './hooks.ts';

const run = promisify(execFile);

export interface ZipEntry {
  readonly name: string;
  readonly content: Buffer;
  readonly compressed: boolean;
  readonly utf8: boolean;
}

/** The entries of an archive, by yauzl at its strictest. */
export async function readZip(file: Buffer): Promise<ZipEntry[]> {
  const archive = await fromBufferPromise(file, {
    lazyEntries: true,
    strictFileNames: true,
    validateEntrySizes: true,
  });
  const entries: ZipEntry[] = [];
  for await (const entry of archive.eachEntry()) {
    const chunks: Buffer[] = [];
    for await (const chunk of await archive.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
    entries.push({
      name: entry.fileName,
      content: Buffer.concat(chunks),
      compressed: entry.compressionMethod === 8,
      utf8: (entry.generalPurposeBitFlag & 0x800) !== 0,
    });
  }
  return entries;
}

/**
 * The entries of an archive as a reader sees them that goes from front to back, such as Java's ZipInputStream: by the local
 * headers alone, which must have sizes and checksums, and leave no byte over before the central directory.
 */
export function readZipStream(file: Buffer): { name: string; content: Buffer }[] {
  const entries: { name: string; content: Buffer }[] = [];
  let at = 0;
  while (file.readUInt32LE(at) === 0x04034b50) {
    const flags = file.readUInt16LE(at + 6);
    if ((flags & 8) !== 0) throw new Error('sizes and checksum are behind the data');
    if ((flags & 0x800) === 0) throw new Error('the name is not said to be UTF-8');
    const method = file.readUInt16LE(at + 8);
    const compressedSize = file.readUInt32LE(at + 18);
    const nameEnd = at + 30 + file.readUInt16LE(at + 26);
    const start = nameEnd + file.readUInt16LE(at + 28);
    const data = file.subarray(start, start + compressedSize);
    const content = method === 8 ? inflateRawSync(data) : data;
    if (content.length !== file.readUInt32LE(at + 22)) throw new Error('the size is wrong');
    if (crc32(content) !== file.readUInt32LE(at + 14)) throw new Error('the checksum is wrong');
    entries.push({ name: file.toString('utf8', at + 30, nameEnd), content: Buffer.from(content) });
    at = start + compressedSize;
  }
  if (file.readUInt32LE(at) !== 0x02014b50) throw new Error('there is something between entries');
  return entries;
}

/** Fails unless Info-ZIP and Python find nothing wrong; returns the names as Python reads them. */
export async function namesByOthers(file: Buffer): Promise<string[]> {
  const path = join(await makeTempDir('zip'), 'file.zip');
  await writeFile(path, file);
  await run('unzip', ['-tqq', path]);
  const program =
    'import json,sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(json.dumps(z.namelist()))';
  const { stdout } = await run('python3', ['-c', program, path]);
  return JSON.parse(stdout) as string[];
}

export interface MadeEntry {
  /** As bytes it is written as it is, and the UTF-8 flag is not set. */
  readonly name: string | Buffer;
  readonly content: Buffer;
  readonly deflate?: boolean;
  /** Bits that are set besides UTF-8: 1 is encryption. */
  readonly flags?: number;
  /** The Unix mode. */
  readonly mode?: number;
  /** What the headers say of the size, when it is a lie. */
  readonly declaredSize?: number;
  /** Upper byte of "version made by"; 3, which is Unix, when absent. */
  readonly madeBy?: number;
  readonly extraField?: Buffer;
}

/** An archive by hand, so that it can lie. */
export function makeZip(entries: readonly MadeEntry[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { name, content, deflate = false, flags = 0, mode = 0o100644, declaredSize } = entry;
    const { madeBy = 3, extraField = Buffer.alloc(0) } = entry;
    const data = deflate ? deflateRawSync(content) : content;
    const encoded = typeof name === 'string' ? Buffer.from(name) : name;
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE((typeof name === 'string' ? 0x800 : 0) | flags, 2);
    fields.writeUInt16LE(deflate ? 8 : 0, 4);
    fields.writeUInt16LE(0x21, 8); // the first day there is: 1980-01-01
    fields.writeUInt32LE(crc32(content), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(declaredSize ?? content.length, 18);
    fields.writeUInt16LE(encoded.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, encoded, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE((mode << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    const start = Buffer.from(`PK\x01\x02\x14${String.fromCharCode(madeBy)}`, 'latin1');
    const centralFields = Buffer.from(fields);
    centralFields.writeUInt16LE(extraField.length, 24);
    central.push(Buffer.concat([start, centralFields, tail, encoded, extraField]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
