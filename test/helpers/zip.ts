import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, type InflateRaw, inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { fromBufferPromise } from 'yauzl';
import { type ClientResponse, expectSuccess } from './client.ts';
import { makeTempDir } from './hooks.ts';
import { execute } from './process.ts';

/** An entry of an archive. */
export interface ZipEntry {
  readonly name: string;
  readonly content: Buffer;
  readonly compressed: boolean;
  readonly utf8: boolean;
}

/** Reads the entries of an archive with yauzl in its strictest mode. */
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

/** An entry as a streaming reader finds it. */
interface StreamedEntry {
  readonly name: string;
  readonly content: Buffer;
  /** Size of the entry's data in the archive. */
  readonly bytes: number;
  /** Whether the size is in front of the data, which is then stored, not deflated. */
  readonly isStored: boolean;
}

/**
 * Reads an archive from front to back as streaming readers such as ZipInputStream of Java do: by
 * local headers alone. Data whose size follows it (APPNOTE.TXT, section 4.3.9) must be deflated,
 * and no bytes may remain before the central directory.
 *
 * @throws {Error} otherwise
 */
export function readZipStream(file: Buffer): StreamedEntry[] {
  const entries: StreamedEntry[] = [];
  let at = 0;
  while (file.readUInt32LE(at) === 0x04034b50) {
    const isStored = (file.readUInt16LE(at + 6) & 8) === 0;
    if (file.readUInt16LE(at + 8) !== (isStored ? 0 : 8)) throw new Error('the end of the data is unknown');
    const nameEnd = at + 30 + file.readUInt16LE(at + 26);
    const name = file.toString('utf8', at + 30, nameEnd);
    const data = file.subarray(nameEnd + file.readUInt16LE(at + 28));
    const { content, bytes } = isStored ? take(data, file.readUInt32LE(at + 18)) : inflate(data);
    const descriptor = isStored ? at + 14 : file.length - data.length + bytes + 4;
    if (crc32(content) !== file.readUInt32LE(descriptor)) throw new Error('the checksum is wrong');
    if (bytes !== file.readUInt32LE(descriptor + 4)) throw new Error('the size in the archive is wrong');
    if (content.length !== file.readUInt32LE(descriptor + 8)) throw new Error('the size is wrong');
    entries.push({ name, content, bytes, isStored });
    at = isStored ? file.length - data.length + bytes : descriptor + 12;
  }
  if (file.readUInt32LE(at) !== 0x02014b50) throw new Error('there is something between entries');
  return entries;
}

const take = (data: Buffer, bytes: number) => ({ content: data.subarray(0, bytes), bytes });

function inflate(data: Buffer): { content: Buffer; bytes: number } {
  const { buffer, engine } = inflateRawSync(data, { info: true }) as unknown as {
    buffer: Buffer;
    engine: InflateRaw;
  };
  return { content: buffer, bytes: engine.bytesWritten };
}

/**
 * Tests an archive with Info-ZIP and Python.
 *
 * @returns the names as Python reads them
 * @throws {Error} if either finds a problem
 */
async function namesByOthers(file: Buffer): Promise<string[]> {
  const path = join(await makeTempDir('zip'), 'file.zip');
  await writeFile(path, file);
  await execute('unzip', ['-tqq', path]);
  const program =
    'import json,sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(json.dumps(z.namelist()))';
  const { stdout } = await execute('python3', ['-c', program, path]);
  return JSON.parse(stdout) as string[];
}

/** Returns the names in an archive of results, about which three readers agree. */
export async function namesIn(answer: ClientResponse): Promise<string[]> {
  const { body } = await expectSuccess(answer);
  const names = (await readZip(body)).map(({ name }) => name);
  expect(await namesByOthers(body)).to.deep.equal(names);
  return names;
}

/** Returns the errors in an archive of results, of which `errors.json` is the last entry. */
export async function errorsIn({ body }: ClientResponse): Promise<BatchError[]> {
  return JSON.parse(String((await readZip(body)).at(-1)?.content));
}

interface BatchError {
  readonly index: number;
  readonly file: string;
  readonly error: { readonly code: number; readonly message: string };
}
