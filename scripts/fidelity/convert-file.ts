import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE, type Note } from '../../src/conversion/plan/types.ts';
import { type InputType, OUTPUT_TYPES, type OutputType } from '../../src/formats.ts';
import { readTags, remainingMetadata } from '../../test/helpers/exif.ts';

/** One file through the service's own way of converting, as a client without wishes would have it. */

export interface Source {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
}

export type FileConversion = { readonly format: OutputType } & (
  | { readonly error: string }
  | { readonly result: Buffer; readonly notes: readonly Note[]; readonly leaked: readonly string[] }
);

/** The file in every format, side by side. */
export async function convertFile(mill: ConversionEngine, source: Source): Promise<FileConversion[]> {
  const workspace = await mill.workspaces.open();
  try {
    const made = await Promise.all(
      OUTPUT_TYPES.map(async (format) => {
        const folder = await workspace.folder(format);
        await writeFile(join(folder, INPUT_FILE), source.bytes);
        const options: ConvertOptions = { format, quality: 80, stripMetadata: true };
        const file = { folder, type: source.type, label: source.name };
        return mill.convert(file, options, new AbortController().signal).then(
          ({ path, notes }) => ({ format, path, notes }),
          (error: Error) => ({ format, error: error.message }),
        );
      }),
    );
    const tags = await readTags(made.flatMap((one) => ('path' in one ? [one.path] : [])));
    return await Promise.all(
      made.map(async (one) => {
        if ('error' in one) return one;
        const ofThis = tags.find(({ SourceFile }) => SourceFile === one.path) ?? {};
        const { format, notes } = one;
        return { format, notes, leaked: remainingMetadata(ofThis), result: await readFile(one.path) };
      }),
    );
  } finally {
    await workspace.remove();
  }
}
