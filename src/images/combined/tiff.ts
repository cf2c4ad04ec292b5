/** @module Combines TIFFs to one with all their pages (TIFF 6.0, section 2). */
import { open } from 'node:fs/promises';
import { type Edit, fileReader, OPEN_FLAGS, readAt } from '../containers/file.ts';
import { MAX_TAGS, TAG, TiffReader } from '../containers/ifd.ts';
import type { Piece } from '../containers/pieces.ts';
import { CombineError } from './combiner.ts';

/** Maximum size of a file whose offsets have 32 bits. */
const MAX_TIFF_BYTES = 2 ** 32 - 1;
/** Offset of that of the first directory. */
const FIRST_AT = 4;
const ENTRY_BYTES = 12;
/** Bytes of a value by its type, from 1. */
const VALUE_BYTES = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4];
const LONG = 4;
const IFD = 13;
/** Tags whose values are offsets of strips and tiles. */
const DATA_TAGS: readonly number[] = [TAG.strips, TAG.tiles];
/** Tags whose values are offsets of directories. */
const DIRECTORY_TAGS: readonly number[] = [TAG.subDirectories, TAG.exif, TAG.gps, TAG.interoperability];
/** Maximum depth of directories in others. */
const MAX_DEPTH = 3;
/** Maximum number of strips or tiles of a page. */
const MAX_OFFSETS = 1_000_000;

/** A TIFF, and where its offsets are. */
interface Pages {
  readonly path: string;
  readonly size: number;
  /** Offset of the first directory, and where the last one states that there is no other. */
  readonly first: number;
  readonly endAt: number;
  /** Places of the number of each page and the number of pages, which are counted anew. */
  readonly numbersAt: readonly number[];
  /** Numbers of 32 bits that are offsets in the file: their places, and the numbers. */
  readonly offsets: readonly { readonly at: number; readonly values: readonly number[] }[];
}

/** Combines little-endian TIFFs. Each is copied, and its offsets are moved by its place. */
export async function combineTiff(paths: readonly string[]): Promise<Piece[]> {
  const files: Pages[] = [];
  for (const path of paths) files.push(await readPages(path));
  const bases: number[] = [];
  let end = 0;
  for (const { size } of files) {
    bases.push(end);
    end += size + (size % 2); // directories start at even offsets
  }
  if (end > MAX_TIFF_BYTES) throw new CombineError(`a TIFF of ${end} bytes`, true);
  const total = files.reduce((sum, { numbersAt }) => sum + numbersAt.length, 0);
  let page = 0;
  return files.flatMap((file, at) => {
    const base = bases[at] as number;
    const next = files[at + 1];
    const following = next ? next.first + (bases[at + 1] as number) : 0;
    const edits = [
      ...file.offsets.map((moved) =>
        edit(
          moved.at,
          4,
          moved.values.map((value) => value + base),
        ),
      ),
      edit(file.endAt, 4, [following]),
      ...file.numbersAt.flatMap((numberAt) => {
        const number = page;
        page += 1;
        return numberAt === 0 ? [] : edit(numberAt, 2, [number, total]);
      }),
    ].sort((one, other) => one.at - other.at);
    return [...withEdits(file, edits), Buffer.alloc(file.size % 2)];
  });
}

/** Writes numbers of 2 or 4 bytes. Cuts page numbers beyond 16 bits, which no limit permits. */
function edit(at: number, length: 2 | 4, values: readonly number[]): Edit {
  const bytes = Buffer.alloc(values.length * length);
  for (const [index, value] of values.entries())
    bytes.writeUIntLE(length === 2 ? value % 65_536 : value, index * length, length);
  return { at, removed: bytes.length, bytes };
}

/** Returns a file with edits as pieces. */
function withEdits({ path, size }: Pages, edits: readonly Edit[]): Piece[] {
  let done = 0;
  const pieces = edits.flatMap(({ at, removed, bytes }): Piece[] => {
    if (at < done || at + removed > size) throw new CombineError(`${path} has tags that overlap or are cut`);
    const from = done;
    done = at + removed;
    return [{ path, from, to: at }, bytes];
  });
  return [...pieces, { path, from: done, to: size }];
}

async function readPages(path: string): Promise<Pages> {
  await using file = await open(path, OPEN_FLAGS);
  const { size } = await file.stat();
  const head = (await readAt(file, 0, FIRST_AT)).bytes.toString('latin1');
  const tiff = await TiffReader.open(fileReader(file));
  const first = await tiff?.first();
  if (!tiff || !first || head !== 'II*\0') throw new CombineError(`${path} is not a TIFF`);
  const offsets: { at: number; values: number[] }[] = [];
  const visited = new Set<number>();
  /** Collects the offsets in a directory and below it. Returns where its page number is, or 0. */
  const collect = async (from: number, depth: number): Promise<number> => {
    if (visited.has(from) || depth > MAX_DEPTH) throw new CombineError(`${path} has directories in a circle`);
    visited.add(from);
    const count = (await tiff.number(from, 2)) ?? 0;
    if (count > MAX_TAGS) throw new CombineError(`${path} has ${count} tags`);
    const { bytes } = await readAt(file, from + 2, count * ENTRY_BYTES);
    let numberAt = 0;
    for (let at = 0; at < bytes.length; at += ENTRY_BYTES) {
      const [tag, type] = [bytes.readUInt16LE(at), bytes.readUInt16LE(at + 2)];
      const [values, valueAt] = [bytes.readUInt32LE(at + 4), from + 2 + at + 8];
      const isInline = values * (VALUE_BYTES[type] ?? 0) <= 4;
      const placeAt = isInline ? valueAt : bytes.readUInt32LE(at + 8);
      if (!isInline) offsets.push({ at: valueAt, values: [placeAt] });
      if (tag === TAG.pageNumber && isInline) numberAt = valueAt;
      const isDirectory = DIRECTORY_TAGS.includes(tag);
      if (!isDirectory && !DATA_TAGS.includes(tag)) continue;
      if ((type !== LONG && type !== IFD) || values > MAX_OFFSETS)
        throw new CombineError(`${path} has offsets of the type ${type}`);
      const found = (await readAt(file, placeAt, 4 * values)).bytes;
      const list = Array.from({ length: values }, (_, index) => found.readUInt32LE(4 * index));
      offsets.push({ at: placeAt, values: list });
      if (isDirectory) for (const inner of list) await collect(inner, depth + 1);
    }
    return numberAt;
  };
  offsets.push({ at: FIRST_AT, values: [first] });
  const numbersAt: number[] = [];
  let endAt = 0;
  for await (const { offset, count, next } of tiff.directories()) {
    numbersAt.push(await collect(offset, 0));
    endAt = offset + 2 + count * ENTRY_BYTES;
    if (next) offsets.push({ at: endAt, values: [next] });
  }
  return { path, size, first, endAt, numbersAt, offsets };
}
