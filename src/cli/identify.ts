/** @module The `identify` command: describes images by their headers. */

import { formatBytes, sanitizeForDisplay, toSafeJson } from '../base/text.ts';
import type { ConversionInput } from '../conversion/context.ts';
import type { ImageDescription } from '../conversion/identify.ts';
import type { Revealed } from '../images/revealed/read-revealed.ts';
import { ALL_INPUT_TYPES, INPUTS } from '../tables/formats.ts';
import { type CliContext, loadLocalSettings } from './context.ts';
import { labelOf, MAX_LABEL_LENGTH } from './convert/converter.ts';
import { forEachFile } from './convert/local-converter.ts';

/**
 * Runs `imagemill identify`: prints a table, what the metadata of each file gives away, or a JSON
 * object for each file.
 *
 * @param args files, folders, patterns, or `-`
 * @returns the exit status: 0 if all files are images, 1 if some are not or cannot be read, 128 or
 *   more after a signal
 * @throws {CliError} if this machine cannot convert images
 */
export async function identify(
  args: readonly string[],
  { json = false, reveal = false }: { json?: boolean; reveal?: boolean },
  { env }: CliContext,
): Promise<number> {
  const rows: string[][] = [];
  const status = await forEachFile(
    args,
    ALL_INPUT_TYPES,
    loadLocalSettings(env),
    async (path, { engine, withStoredInput, signal }) => {
      const addRow = async (source: ConversionInput): Promise<void> => {
        const description = await engine.identify(source, { reveal }, signal);
        if (reveal && !json) printRevealed(labelOf(path), description.revealed);
        else if (json) console.log(toSafeJson({ file: path, ...description }));
        else rows.push([labelOf(path), ...formatRow(description)]);
      };
      await withStoredInput(path, addRow, ALL_INPUT_TYPES);
    },
    json ? 'file' : undefined,
  );
  for (const line of formatTable(rows)) console.log(sanitizeForDisplay(line, MAX_LABEL_LENGTH));
  return status;
}

/** Columns of the kinds, and maximum length of a line. */
const KIND_WIDTH = 9;
const MAX_LINE_LENGTH = 400;

/** Prints the name of a file, and a line for each value. Omits files that give nothing away. */
function printRevealed(label: string, revealed: Revealed | undefined): void {
  const { values = [], thumbnail, complete = false } = revealed ?? {};
  const lines = [
    ...values.map(({ kind, name, value }) => `  ${kind.padEnd(KIND_WIDTH)}  ${name}: ${value}`),
    ...(thumbnail ? [`  thumbnail  ${formatBytes(thumbnail.bytes)}: it can show what was cropped`] : []),
    ...(complete ? [] : ['  not all metadata could be read']),
  ];
  if (lines.length === 0) return;
  for (const line of [label, ...lines]) console.log(sanitizeForDisplay(line, MAX_LINE_LENGTH));
}

function formatRow(image: ImageDescription): string[] {
  const { type, width, height, frames, pages, bytes, alpha, bits, colour_space: space } = image;
  const count =
    frames === null ? 'animated' : frames > 1 ? `${frames} frames` : pages > 1 ? `${pages} pages` : '';
  const details = [
    count,
    image.orientation > 1 ? `orientation ${image.orientation}` : '',
    alpha ? 'alpha' : '',
    image.hdr ?? '',
    image.profile ?? '',
    ...image.metadata,
    image.problem ? `not convertible: ${image.problem.reason}` : '',
  ];
  return [
    INPUTS[type].label,
    width === null ? '?' : `${width} × ${height}`,
    bits === null ? '' : `${bits}-bit ${space}`,
    formatBytes(bytes),
    details.filter(Boolean).join(', '),
  ];
}

/** Aligns columns. The last one has no padding. */
function formatTable(rows: readonly (readonly string[])[]): string[] {
  // A folder can have more images than a function can have arguments.
  const widths = (rows[0] ?? []).map((_, at) =>
    rows.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0),
  );
  return rows.map((row) => {
    const cells = row.map((cell, at) => cell.padEnd(widths[at] as number));
    return cells.join('  ').trimEnd();
  });
}
