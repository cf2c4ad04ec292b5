/** @module Converts one file with the engine of the service. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { type InputType, OUTPUT_TYPES, type OutputType } from '../../src/tables/formats.ts';
import type { Note } from '../../src/tables/notes.ts';
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
export const convertFile = (engine: ConversionEngine, source: Source): Promise<FileConversion[]> =>
  engine.workspaces.use({}, async (workspace) => {
    const convert = async (format: OutputType) => {
      const folder = await workspace.folder(format);
      await writeFile(join(folder, INPUT_FILE), source.bytes);
      // A PDF is drawn at 72 dpi, at which its pixels are those of the file.
      const options: ConvertOptions = { format, quality: 80, metadata: 'none', dpi: 72 };
      const file = { folder, type: source.type, label: source.name };
      return engine.convert(file, options, new AbortController().signal).then(
        ({ path, notes }) => ({ format, path, notes }),
        (error: Error) => ({ format, error: error.message }),
      );
    };
    const results = await Promise.all(OUTPUT_TYPES.map(convert));
    const tags = await readTags(results.flatMap((one) => ('path' in one ? [one.path] : [])));
    const read = async (one: Awaited<ReturnType<typeof convert>>): Promise<FileConversion> => {
      if ('error' in one) return one;
      const { format, notes, path } = one;
      const leaked = remainingMetadata(tags.find(({ SourceFile }) => SourceFile === path) ?? {});
      return { format, notes, leaked, result: await readFile(path) };
    };
    return Promise.all(results.map(read));
  });
