/** @module The `responsive` command: one image in several widths and formats, and the `<picture>` element that uses them. */
import { join } from 'node:path';
import { z } from 'zod';
import { integer, outputFormat } from '../conversion/options.ts';
import type { ConversionResult, Variant } from '../conversion/types.ts';
import { ALL_OUTPUT_TYPES, EXTRA_OUTPUT_TYPES, MAX_DIMENSION, OUTPUTS, type OutputType } from '../formats.ts';
import { NOTES, type Note } from '../notes.ts';
import { baseNameOf } from '../text.ts';
import { type CliContext, CliError, loadLocalSettings } from './context.ts';
import { STDIN } from './convert/converter.ts';
import { forEachFile } from './convert/local-converter.ts';
import { writeOutput } from './convert/output.ts';

/** Options as given on the command line. */
export interface ResponsiveFlags {
  readonly widths: string;
  readonly formats: string;
  readonly sizes: string;
  readonly output: string;
  readonly quality: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/**
 * Runs `imagemill responsive`: writes the files, and prints the HTML element or a JSON object.
 *
 * @returns the exit status: 0 if all files were written, 1 if not, 128 or more after a signal
 * @throws {CliError} for invalid options, or if this machine cannot convert
 */
export async function responsive(
  input: string,
  flags: ResponsiveFlags,
  { env }: CliContext,
): Promise<number> {
  const { widths, formats, quality } = parseFlags(flags);
  const settings = loadLocalSettings(env);
  const extras = EXTRA_OUTPUT_TYPES.filter((type) => formats.includes(type));
  const config = settings.EXTRA_OUTPUTS === 'all' ? settings : { ...settings, EXTRA_OUTPUTS: extras };
  const variants = formats.flatMap((format) =>
    widths.map(
      (width): Variant => ({
        name: `${width}.${format}`,
        options: { format, width, quality, stripMetadata: true },
      }),
    ),
  );
  const find = () => [{ path: input }];
  return forEachFile(config, find, async ({ path }, { engine, withStoredInput, signal }) => {
    const files: SetFile[] = [];
    const losses: { readonly note: Note; readonly file: string }[] = [];
    await withStoredInput(path, async (source) => {
      const outcomes = await engine.convertVariants(source, variants, 'fail', signal);
      for (const outcome of outcomes) {
        if ('error' in outcome) throw outcome.error;
        const file = describe(outcome.converted, path);
        // An image is not enlarged, so widths beyond its own give the same file.
        if (files.some((other) => other.file === file.file)) continue;
        await writeOutput(outcome.converted.path, join(flags.output, file.file), flags.force ?? false);
        files.push(file);
        losses.push(...outcome.converted.notes.map((note) => ({ note, file: file.file })));
      }
    });
    for (const [note, of] of Map.groupBy(losses, (loss) => loss.note)) {
      if (NOTES[note].loss) console.error(`imagemill: ${note}: ${of.map(({ file }) => file).join(', ')}`);
    }
    const html = formatPicture(files, flags.sizes);
    console.log(flags.json ? JSON.stringify({ files, html }) : html);
  });
}

/** Formats that browsers show, best first. */
const IN_BROWSERS: readonly OutputType[] = ['avif', 'webp', 'jpg', 'png', 'gif'];

const list = (text: string): string[] => text.split(',').map((item) => item.trim());

function parseFlags({ widths, formats, quality }: ResponsiveFlags) {
  const schema = z.object({
    widths: z.array(integer(1, MAX_DIMENSION)),
    formats: z.array(outputFormat(ALL_OUTPUT_TYPES.filter((type) => IN_BROWSERS.includes(type)))),
    quality: integer(1, 100),
  });
  const given = { widths: list(widths), formats: list(formats), quality };
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const lines = result.error.issues.map(({ path: [flag, at], message }) => {
    const value = flag === 'quality' ? quality : given[flag as 'widths'][at as number];
    return `Invalid --${String(flag)} "${value}": expected ${message}.`;
  });
  throw new CliError(lines.join('\n'));
}

type SetFile = ReturnType<typeof describe>;

function describe({ width = 0, height = 0, bytes, format }: ConversionResult, input: string) {
  const file = `${baseNameOf(input === STDIN ? undefined : input)}-${width}.${format}`;
  return { file, format, type: OUTPUTS[format].mediaType, width, height, bytes };
}

/** Formats the HTML element. The last format is that of `<img>`, for browsers that support no other. */
function formatPicture(files: readonly SetFile[], sizes: string): string {
  const byFormat = [...Map.groupBy(files, ({ format }) => format).values()].map((set) =>
    set.sort((a, b) => a.width - b.width),
  );
  const fallback = byFormat.at(-1) as SetFile[];
  const sources = byFormat
    .slice(0, -1)
    .map(
      (set) => `  <source type="${set[0]?.type}" srcset="${srcset(set)}" sizes="${escapeAttribute(sizes)}">`,
    );
  const { file, width, height } = fallback.at(-1) as SetFile;
  return [
    '<picture>',
    ...sources,
    `  <img src="${encodeURIComponent(file)}" srcset="${srcset(fallback)}" sizes="${escapeAttribute(sizes)}" width="${width}" height="${height}" alt="">`,
    '</picture>',
  ].join('\n');
}

const srcset = (files: readonly SetFile[]): string =>
  files.map(({ file, width }) => `${encodeURIComponent(file)} ${width}w`).join(', ');

const escapeAttribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
