/** @module The `identify` command: describes images by their headers. */
import { availableParallelism } from 'node:os';
import type { ImageDescription } from '../conversion/identify.ts';
import { ALL_INPUT_TYPES, INPUTS } from '../formats.ts';
import { formatBytes } from '../text.ts';
import { type CliContext, loadSettings } from './context.ts';
import { toFileError } from './convert/converter.ts';
import { startEngine, withStoredFile } from './convert/local-converter.ts';
import { labelOf } from './convert/report.ts';

/**
 * Runs `imagemill identify`: prints a table, or a JSON object for each file.
 *
 * @returns the exit status: 0 if all files are images, 1 if some are not or cannot be read
 * @throws {CliError} with status 2, if this machine cannot convert images
 */
export async function identify(
  files: readonly string[],
  { json = false }: { json?: boolean },
  { env }: CliContext,
): Promise<number> {
  const config = loadSettings(env);
  const { engine } = await startEngine(config, availableParallelism());
  const { signal } = new AbortController();
  const limits = { types: ALL_INPUT_TYPES, signal, maxBytes: config.MAX_FILE_BYTES };
  let status = 0;
  try {
    const rows: string[][] = [];
    for (const file of files) {
      try {
        await withStoredFile(engine, file, limits, async (source) => {
          const description = await engine.identify(source, undefined, signal);
          if (json) console.log(JSON.stringify({ file, ...description }));
          else rows.push([labelOf(file), ...formatRow(description)]);
        });
      } catch (error) {
        const { code, message } = toFileError(error, file);
        if (json) console.log(JSON.stringify({ file, error: { code, message } }));
        else console.error(`imagemill: ${message}`);
        status = 1;
      }
    }
    for (const line of formatTable(rows)) console.log(line);
    return status;
  } finally {
    await engine.close();
  }
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
