/** @module Files that tools commonly get wrong (`fixtures/traps/`), and their expected results. */
import { readdirSync, readFileSync } from 'node:fs';
import type { OutputType } from '../../src/tables/formats.ts';
import type { Note } from '../../src/tables/notes.ts';
import { edgeCasePath } from './client.ts';

/** Content of a JSON file beside an image. */
export interface ExpectedResult {
  /** What the file tests, as a sentence. */
  readonly description: string;
  /** Size of a still result in px. */
  readonly size?: readonly [width: number, height: number];
  /** Samples in flat areas: position and expected red, green, blue, and alpha if it is not 255. */
  readonly pixels?: readonly (readonly [x: number, y: number, colour: readonly number[]])[];
  /** Additional tolerance per channel (0 to 255) if the file itself is not exact. */
  readonly within?: number;
  /** Expected frame delays in ms and loop count in formats that support animation. */
  readonly moving?: { readonly delays: readonly number[]; readonly plays: number };
  /** Pages of the PDF; 1 by default. */
  readonly pages?: number;
  /** Expected notes by output format; `any` applies to formats that are not listed. */
  readonly notes?: Partial<Record<OutputType | 'any', readonly Note[]>>;
  /** Expected error instead of a result. With `by`, only from that major version of ImageMagick. */
  readonly refused?: { readonly status: number; readonly says: string; readonly by?: 6 | 7 };
}

/** Names of the images. */
export const EDGE_CASE_NAMES: readonly string[] = readdirSync(edgeCasePath('')).filter(
  (name) => !name.endsWith('.json'),
);

export const expectedResult = (name: string): ExpectedResult =>
  JSON.parse(readFileSync(edgeCasePath(`${name}.json`), 'utf8'));
