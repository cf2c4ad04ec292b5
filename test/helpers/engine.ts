/** @module Conversions by the engine of the service, without a server. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionInput, ConversionResult } from '../../src/conversion/context.ts';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { DETECTION_BYTES, detectType } from '../../src/images/index.ts';
import { ALL_INPUT_TYPES, type InputType } from '../../src/tables/formats.ts';

/** A file to convert, and more properties of {@link ConversionInput}. */
export type EngineInput = Omit<Partial<ConversionInput>, 'folder'> & {
  readonly type: InputType;
  readonly bytes: Uint8Array;
};

/**
 * Converts a file in a workspace of its own, and passes the result to `use` before the workspace is
 * removed.
 */
export const convertWith = <T>(
  engine: ConversionEngine,
  { bytes, ...input }: EngineInput,
  options: ConvertOptions,
  use: (result: ConversionResult) => Promise<T>,
): Promise<T> =>
  engine.workspaces.use({}, async (workspace) => {
    const folder = await workspace.folder('file');
    await writeFile(join(folder, INPUT_FILE), bytes);
    const { signal } = new AbortController();
    return use(await engine.convert({ folder, label: 'The file', ...input }, options, signal));
  });

/** Returns the type of an image by its first bytes; undefined if it is of no type. */
export async function typeOf(bytes: Buffer): Promise<InputType | undefined> {
  const head = bytes.subarray(0, DETECTION_BYTES * 16);
  const type = await detectType(head, head.length === bytes.length);
  return ALL_INPUT_TYPES.find((known) => known === type);
}
