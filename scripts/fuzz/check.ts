/**
 * @module Converts damaged files with the engine, and compares the results with what sharp and
 * Pillow show.
 */
import { readFile } from 'node:fs/promises';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import { ServiceError } from '../../src/tables/errors.ts';
import type { InputType } from '../../src/tables/formats.ts';
import { convertWith, typeOf } from '../../test/helpers/engine.ts';
import { decode, difference, type Pixels } from '../../test/helpers/pixels.ts';
import { DECODERS, type Decoder } from '../fidelity/reference.ts';

const ALLOWED_STATUSES = [400, 413, 415];
/** Maximum mean absolute error (0 to 255) between images that count as the same. */
const MAX_ERROR = 1;
const OPTIONS: ConvertOptions = { format: 'png', quality: 80, metadata: 'none' };

/** Kinds of outcomes. `lost` is a rejected file whose image other decoders still show. */
export const KINDS = ['converted', 'rejected', 'lost', 'failed'] as const;

/** Outcome of the conversion of a damaged file. */
export interface Outcome {
  readonly kind: (typeof KINDS)[number];
  /** What is wrong; undefined if nothing is. */
  readonly finding?: string;
  /** Whether the image was compared with that of the undamaged file. */
  readonly compared?: boolean;
}

/** An undamaged file. */
export interface Source {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
  /**
   * What imagemill and all `decoders` show; undefined if they disagree, or if imagemill or all of
   * them reject the file.
   */
  readonly image?: Pixels | undefined;
  /** The decoders that read the file. */
  readonly decoders: readonly Decoder[];
}

/** Loads a file. Returns undefined if the engine does not read its type. */
export async function loadSource(
  engine: ConversionEngine,
  name: string,
  bytes: Buffer,
): Promise<Source | undefined> {
  const type = await readableType(engine, bytes);
  if (!type) return undefined;
  const shown = await convert(engine, type, bytes).catch(() => undefined);
  const images = await Promise.all(DECODERS.map((decoder) => show(decoder, bytes)));
  const decoders = DECODERS.filter((_, at) => images[at]);
  const agreed = shown && decoders.length > 0 && images.every((one) => !one || isSame(one, shown));
  return { name, bytes, type, decoders, image: agreed ? shown : undefined };
}

/** Converts a damaged copy of a file, and compares the result with the undamaged image. */
export async function check(engine: ConversionEngine, source: Source, bytes: Buffer): Promise<Outcome> {
  const type = await readableType(engine, bytes);
  if (!type) return { kind: 'rejected' };
  const result = await convert(engine, type, bytes).catch((error: Error) => error);
  if (result instanceof Error) return checkError(result, source, bytes);
  const { image } = source;
  if (!image) return { kind: 'converted' };
  if (isSame(result, image)) return { kind: 'converted', compared: true };
  if (!(await isStillShown(source, bytes))) return { kind: 'converted' };
  return { kind: 'converted', compared: true, finding: 'differs from what other decoders show' };
}

async function readableType(engine: ConversionEngine, bytes: Buffer): Promise<InputType | undefined> {
  const type = await typeOf(bytes);
  return engine.capabilities.inputs.find((known) => known === type);
}

const convert = (engine: ConversionEngine, type: InputType, bytes: Buffer): Promise<Pixels> =>
  convertWith(engine, { type, bytes, client: 'fuzz' }, OPTIONS, async ({ path }) =>
    decode(await readFile(path)),
  );

async function checkError(error: Error, source: Source, bytes: Buffer): Promise<Outcome> {
  if (!(error instanceof ServiceError))
    return { kind: 'failed', finding: `internal error: ${error.message}` };
  if (!ALLOWED_STATUSES.includes(error.status))
    return { kind: 'failed', finding: `status ${error.status}: ${error.message}` };
  const isLost = await isStillShown(source, bytes);
  return isLost ? { kind: 'lost', finding: error.message } : { kind: 'rejected' };
}

/**
 * Returns whether all decoders that read the undamaged file show the same image for the damaged
 * one.
 */
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
