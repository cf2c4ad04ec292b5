/** @module The `identify` command: describes images by their headers. */
import type { ImageDescription } from '../conversion/identify.ts';
import type { ConversionInput } from '../conversion/types.ts';
import { ALL_INPUT_TYPES, INPUTS } from '../formats.ts';
import { formatBytes } from '../text.ts';
import { type CliContext, loadLocalSettings } from './context.ts';
import { labelOf } from './convert/converter.ts';
import { forEachFile } from './convert/local-converter.ts';

/**
 * Runs `imagemill identify`: prints a table, or a JSON object for each file.
 *
 * @returns the exit status: 0 if all files are images, 1 if some are not or cannot be read, 128 or more after a signal
 * @throws {CliError} if this machine cannot convert images
 */
export async function identify(
  files: readonly string[],
  { json = false }: { json?: boolean },
  { env }: CliContext,
): Promise<number> {
  const rows: string[][] = [];
  const find = () => files.map((path) => ({ path }));
  const status = await forEachFile(
    loadLocalSettings(env),
    find,
    async ({ path }, { engine, withStoredInput, signal }) => {
      const addRow = async (source: ConversionInput): Promise<void> => {
        const description = await engine.identify(source, undefined, signal);
        if (json) console.log(JSON.stringify({ file: path, ...description }));
        else rows.push([labelOf(path), ...formatRow(description)]);
      };
      await withStoredInput(path, addRow, ALL_INPUT_TYPES);
    },
    json ? 'file' : undefined,
  );
  for (const line of formatTable(rows)) console.log(line);
  return status;
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
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] as number))
      .join('  ')
      .trimEnd(),
  );
}
