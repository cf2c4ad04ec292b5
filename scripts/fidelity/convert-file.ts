/** @module Converts one file with the engine of the service and default options. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { type InputType, OUTPUT_TYPES, type OutputType } from '../../src/formats.ts';
import type { Note } from '../../src/notes.ts';
import { readTags, remainingMetadata } from '../../test/helpers/exif.ts';

/** A file to convert. */
export interface Source {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
}

/** Result or error of one conversion. `leaked` lists metadata that should have been stripped. */
export type FileConversion = { readonly format: OutputType } & (
  | { readonly error: string }
  | { readonly result: Buffer; readonly notes: readonly Note[]; readonly leaked: readonly string[] }
);

/** Converts the file to every output format in parallel. */
export async function convertFile(engine: ConversionEngine, source: Source): Promise<FileConversion[]> {
  const workspace = await engine.workspaces.open();
  try {
    const results = await Promise.all(
      OUTPUT_TYPES.map(async (format) => {
        const folder = await workspace.folder(format);
        await writeFile(join(folder, INPUT_FILE), source.bytes);
        const options: ConvertOptions = { format, quality: 80, stripMetadata: true };
        const file = { folder, type: source.type, label: source.name };
        return engine.convert(file, options, new AbortController().signal).then(
          ({ path, notes }) => ({ format, path, notes }),
          (error: Error) => ({ format, error: error.message }),
        );
      }),
    );
    const tags = await readTags(results.flatMap((one) => ('path' in one ? [one.path] : [])));
    return await Promise.all(
      results.map(async (one) => {
        if ('error' in one) return one;
        const fileTags = tags.find(({ SourceFile }) => SourceFile === one.path) ?? {};
        const { format, notes } = one;
        return { format, notes, leaked: remainingMetadata(fileTags), result: await readFile(one.path) };
      }),
    );
  } finally {
    await workspace.remove();
  }
}
