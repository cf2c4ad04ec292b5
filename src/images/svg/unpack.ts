/** @module Unpacks an SVG that is compressed with gzip (`svgz`; SVG 1.1, appendix I). */

import { open, readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { serviceErrorFrom } from '../../errors.ts';
import { INPUTS } from '../../formats.ts';
import type { RepairContext } from '../containers/file.ts';

const unpack = promisify(gunzip);
const GZIP = Buffer.from([0x1f, 0x8b]);

/**
 * Unpacks the file at `path` in place, if it is compressed.
 *
 * @throws {ServiceError} FILE_TOO_LARGE, CORRUPT_IMAGE or DISK_FULL
 */
export async function unpackSvg(path: string, { label, maxBytes, store }: RepairContext): Promise<void> {
  if (!(await isGzip(path))) return;
  const packed = await readFile(path);
  const text = await unpack(packed, { maxOutputLength: maxBytes }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE'
      ? serviceErrorFrom(error, 'FILE_TOO_LARGE', label, maxBytes)
      : serviceErrorFrom(error, 'CORRUPT_IMAGE', label, INPUTS.svg.label);
  });
  await store(Math.max(0, text.length - packed.length));
  await writeFile(path, text);
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0);
    return buffer.equals(GZIP);
  } finally {
    await file.close();
  }
}
