import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { ZipArchive, type ZipEntryData } from 'archiver';
import type { Response } from 'express';
import type { Outcome } from '../convert/batch.ts';
import { baseNameOf, createNaming } from '../convert/output-name.ts';
import { OUTPUTS, type OutputType } from '../formats.ts';
import { sendingFailed } from './client-signal.ts';
import { errorBody } from './error-handler.ts';
import { hangUpWhenStalled } from './send-file.ts';

/** Sends the results of a batch as a ZIP archive that is made while it flows. */

export interface Result {
  /** What the client called the file. */
  readonly name: string | undefined;
  readonly outcome: Outcome;
}

const ARCHIVE_NAME = 'converted.zip';
const ERRORS_NAME = 'errors.json';
/** zlib's level for what is worth compressing: BMP. */
const LEVEL = 6;

/**
 * Every conversion is done before the first byte goes out, so that the status never lies.
 * What goes wrong after that cuts the connection: nobody takes half an archive for a whole one.
 *
 * @param stallMs see {@link hangUpWhenStalled}
 */
export async function sendArchive(
  res: Response,
  results: readonly Result[],
  format: OutputType,
  stallMs: number,
): Promise<void> {
  res.setHeader('Content-Type', 'application/zip');
  res.setHeader('Content-Disposition', `attachment; filename=${ARCHIVE_NAME}`);
  res.setHeader('Cache-Control', 'no-store');

  hangUpWhenStalled(res, stallMs);
  const archive = new ZipArchive({ zlib: { level: LEVEL } });
  const sending = pipeline(archive, res);
  sending.catch(() => {}); // it is looked at below, but may fail before
  try {
    await fill(archive, results, format, sending);
    await Promise.all([archive.finalize(), sending]);
  } catch (cause) {
    archive.destroy();
    await sending.catch(() => {});
    throw sendingFailed(cause);
  }
}

/** One file after the other: only one is open at a time, and none when `sending` has failed. */
async function fill(
  archive: ZipArchive,
  results: readonly Result[],
  format: OutputType,
  sending: Promise<void>,
): Promise<void> {
  const { extension, compressed } = OUTPUTS[format];
  const converted = results.flatMap(({ name, outcome }) =>
    'converted' in outcome ? [{ name, path: outcome.converted.path }] : [],
  );
  const nameOf = createNaming(extension);
  for (const { name, path } of converted) {
    // What looks like a drive would be taken off by the library that writes the archive.
    const base = baseNameOf(name).replaceAll(':', '_');
    const entry: ZipEntryData = { name: nameOf(base), store: compressed };
    const file = await open(path);
    const source = file.createReadStream();
    source.on('error', (error) => archive.destroy(error));
    const added = once(archive, 'entry');
    archive.append(source, entry);
    try {
      await Promise.race([added, sending]);
    } finally {
      source.destroy();
      await file.close();
    }
  }

  const errors = results.flatMap(({ name, outcome }, index) =>
    'error' in outcome
      ? [{ index, file: name ?? null, ...errorBody(outcome.error.status, outcome.error.message) }]
      : [],
  );
  if (errors.length > 0) archive.append(`${JSON.stringify(errors, null, 2)}\n`, { name: ERRORS_NAME });
}
