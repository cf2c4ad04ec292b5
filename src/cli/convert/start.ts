/** @module Starts the converter and the index of the `convert` command only if they are needed. */
import type { Config } from '../../config.ts';
import { optionalTools, selectExtras } from '../../conversion/extras.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { systemReason } from '../../files/system-reason.ts';
import { fingerprintTools } from '../../process/toolchain.ts';
import { CliError } from '../context.ts';
import type { BulkOptions } from './bulk-options.ts';
import type { Converter } from './converter.ts';
import { createLibrary, type Library } from './library.ts';
import { hashRecipe } from './recipe.ts';
import { openResultIndex } from './result-index.ts';

/** A converter that starts on first use. */
export interface LazyConverter {
  /** Starts the converter, unless it has started. */
  start(): Promise<Converter>;
  /** Ends the converter if it has started. */
  close(): Promise<void>;
}

/** Creates a converter that starts on first use. */
export function startOnDemand(start: () => Promise<Converter>): LazyConverter {
  let started: Promise<Converter> | undefined;
  return {
    start() {
      started ??= start();
      return started;
    },
    async close() {
      const converter = await started?.catch(() => undefined); // the caller of `start` has the error
      await converter?.close();
    },
  };
}

/** Options of {@link openLibrary}. */
export interface LibraryOptions {
  readonly config: Config;
  readonly bulk: BulkOptions;
  readonly options: ConvertOptions;
  /** Version of this program. */
  readonly version: string;
  readonly converter: LazyConverter;
}

/**
 * Opens the index of an output folder. Starts no tool if the index knows the versions of the installed tools.
 *
 * @throws {CliError} with status 2, if the folder cannot be written
 */
export async function openLibrary(
  output: string,
  { config, bulk, options, version, converter }: LibraryOptions,
): Promise<Library> {
  const index = await openResultIndex(output, bulk.shard).catch((error) => {
    throw new CliError(`${output} cannot be written: ${systemReason(error)}.`, 2);
  });
  if (bulk.urls.length > 0) {
    const { maker } = await converter.start();
    return createLibrary(output, index, hashRecipe(options, maker, version));
  }
  const { PATH: path, MAGICK_BIN: magickBin, RSVG_BIN: rsvgBin } = config;
  const optional = optionalTools(selectExtras(config));
  const fingerprint = await fingerprintTools({ path, magickBin, rsvgBin, optional });
  const maker = index.makerOf(fingerprint) ?? (await converter.start()).maker;
  await index.setMaker(fingerprint, maker);
  return createLibrary(output, index, hashRecipe(options, maker, version));
}
