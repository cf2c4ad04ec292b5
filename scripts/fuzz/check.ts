/** @module Converts damaged files with the engine, and compares the results with what sharp and Pillow show. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { ServiceError } from '../../src/errors.ts';
import type { InputType } from '../../src/formats.ts';
import { DETECTION_BYTES, detectType } from '../../src/images/detect.ts';
import { decode, difference, type Pixels } from '../../test/helpers/pixels.ts';
import { DECODERS, type Decoder } from '../fidelity/reference.ts';
import type { Outcome } from './outcome.ts';

const ALLOWED_STATUSES = [400, 413, 415];
/** Maximum mean absolute error (0 to 255) between images that count as the same. */
const MAX_ERROR = 1;
const OPTIONS: ConvertOptions = { format: 'png', quality: 80, stripMetadata: true };

/** An undamaged file. */
export interface Source {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
  /** What imagemill and all `decoders` show; undefined if they disagree, or if imagemill or all of them reject the file. */
  readonly image?: Pixels | undefined;
  /** The decoders that read the file. */
  readonly decoders: readonly Decoder[];
}

/** Loads files and checks damaged copies of them. */
interface Checks {
  /** Returns undefined if the engine does not read the type of the file. */
  loadSource(name: string, bytes: Buffer): Promise<Source | undefined>;
  /** Converts a damaged copy, and compares the result with the undamaged image. */
  check(source: Source, bytes: Buffer): Promise<Outcome>;
}

/** Creates checks with a running engine. */
export function createChecks(engine: ConversionEngine): Checks {
  const typeOf = async (bytes: Buffer): Promise<InputType | undefined> => {
    const head = bytes.subarray(0, DETECTION_BYTES * 16);
    const type = await detectType(head, head.length === bytes.length);
    return engine.capabilities.inputs.find((known) => known === type);
  };

  const convert = async (type: InputType, bytes: Buffer): Promise<Pixels> => {
    const workspace = await engine.workspaces.open();
    try {
      const folder = await workspace.folder('fuzz');
      writeFileSync(join(folder, INPUT_FILE), bytes);
      const file = { folder, type, label: 'fuzz', client: 'fuzz' };
      const { path } = await engine.convert(file, OPTIONS, new AbortController().signal);
      return await decode(readFileSync(path));
    } finally {
      await workspace.remove();
    }
  };

  return {
    loadSource: async (name, bytes) => {
      const type = await typeOf(bytes);
      if (!type) return undefined;
      const shown = await convert(type, bytes).catch(() => undefined);
      const images = await Promise.all(DECODERS.map((decoder) => show(decoder, bytes)));
      const decoders = DECODERS.filter((_, at) => images[at]);
      const agreed = shown && decoders.length > 0 && images.every((one) => !one || isSame(one, shown));
      return { name, bytes, type, decoders, image: agreed ? shown : undefined };
    },
    check: async (source, bytes) => {
      const type = await typeOf(bytes);
      if (!type) return { kind: 'rejected' };
      const result = await convert(type, bytes).catch((error: Error) => error);
      if (result instanceof Error) return (await checkError(result, source, bytes)) ?? { kind: 'rejected' };
      const { image } = source;
      if (!image) return { kind: 'converted' };
      if (isSame(result, image)) return { kind: 'converted', compared: true };
      if (!(await isStillShown(source, bytes))) return { kind: 'converted' };
      return { kind: 'converted', compared: true, finding: 'differs from what other decoders show' };
    },
  };
}

/** Returns the finding for an error, or undefined if the rejection is correct. */
async function checkError(error: Error, source: Source, bytes: Buffer): Promise<Outcome | undefined> {
  if (!(error instanceof ServiceError))
    return { kind: 'failed', finding: `internal error: ${error.message}` };
  if (!ALLOWED_STATUSES.includes(error.status))
    return { kind: 'failed', finding: `status ${error.status}: ${error.message}` };
  return (await isStillShown(source, bytes)) ? { kind: 'lost', finding: error.message } : undefined;
}

/** Returns whether all decoders that read the undamaged file show the same image for the damaged one. */
async function isStillShown({ image, decoders }: Source, bytes: Buffer): Promise<boolean> {
  if (!image) return false;
  for (const decoder of decoders) {
    const shown = await show(decoder, bytes);
    if (!shown || !isSame(shown, image)) return false;
  }
  return true;
}

const show = (decoder: Decoder, bytes: Buffer): Promise<Pixels | undefined> =>
  decoder(bytes).catch(() => undefined);

const isSame = (one: Pixels, other: Pixels): boolean =>
  one.width === other.width && one.height === other.height && difference(one, other).mae <= MAX_ERROR;
