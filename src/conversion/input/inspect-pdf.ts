/** @module Inspects a PDF with pdfinfo before it is planned: how many pages, and their sizes. */
import type { ImageFacts, Page } from '../../images/image-info.ts';
import type { ConversionInput, Inspector } from '../context.ts';
import { conversionLimit } from '../limits/limits.ts';
import { invalidOutputError, translateToolError } from '../output/tool-errors.ts';
import { keepsAllPages, numberedPages } from '../plan/size.ts';
import { type ConvertOptions, INPUT_FILE } from '../plan/types.ts';

type Pages = Required<Pick<ImageFacts, 'pages' | 'pageCount'>>;

/** Pages whose sizes one command prints, in 60 bytes each: at most 64 KiB of output are kept. */
const PAGES_PER_COMMAND = 500;
/**
 * Limit of the processor time of a command, in s. All clients share the few inspections that can
 * run at once, and a file of 1 kB can unpack to gigabytes. A file with 10 000 pages takes a
 * fraction of it.
 */
const MAX_CPU_SECONDS = 1;
const CPU_LIMIT = { ms: MAX_CPU_SECONDS * 1000, work: 'reading the pages of a PDF' };
/** Time limit of an inspection, in ms, for busy machines. */
const INSPECTION_LIMIT = { ...CPU_LIMIT, ms: 5000 };
/** Maximum memory of pdfinfo, in bytes. A file of 10 MB and 10 000 pages takes a hundredth. */
const MAX_MEMORY_BYTES = 1024 ** 3;

/**
 * Reads the number of pages, and the sizes in points of the first page, and of all between those
 * that results need. If `MAX_FRAMES` does not permit all pages, a result with all of them needs
 * only the first.
 *
 * @param requested the options of each result
 * @returns no pages if pdfinfo is not installed
 * @throws {ServiceError} FILE_ENCRYPTED, CORRUPT_IMAGE, or an error about a limit
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function inspectPdf(
  source: ConversionInput,
  requested: readonly ConvertOptions[],
  { config, toolchain: { pdfinfo }, run, signal }: Inspector,
): Promise<ImageFacts> {
  if (!pdfinfo) return {};
  const limit = config.CONVERT_TIMEOUT_MS > INSPECTION_LIMIT.ms ? INSPECTION_LIMIT : conversionLimit(config);
  const deadline = performance.now() + limit.ms;
  const readPages = async (from: number, to: number): Promise<Pages> => {
    const { stdout } = await run({
      file: pdfinfo.path,
      args: ['-f', String(from), '-l', String(to), INPUT_FILE],
      cwd: source.folder,
      outputs: [],
      signal,
      memoryBytes: MAX_MEMORY_BYTES,
      cpuSeconds: MAX_CPU_SECONDS,
      timeoutMs: Math.max(1, Math.ceil(deadline - performance.now())),
    }).catch((error) => {
      throw translateToolError(error, 'pdfinfo', source, error.signal === 'SIGXCPU' ? CPU_LIMIT : limit);
    });
    const found = parsePages(stdout);
    if (found.pages.length <= to - from) throw invalidOutputError('pages without a size', source);
    return found;
  };
  const { pages: first, pageCount } = await readPages(1, 1);
  const pages = [...first];
  const ranges = requested.flatMap((options) => {
    const all = keepsAllPages(options) && pageCount <= config.MAX_FRAMES;
    return all ? [[1, pageCount] as const] : (numberedPages(options) ?? []);
  });
  const last = Math.min(pageCount, Math.max(1, ...ranges.map(([, to]) => to)));
  let from = Math.max(2, Math.min(...ranges.map(([first]) => first)));
  for (; from <= last; from += PAGES_PER_COMMAND)
    pages.push(...(await readPages(from, Math.min(last, from + PAGES_PER_COMMAND - 1))).pages);
  return { pages, pageCount };
}

/** The lines about pages. Those before can imitate them, so the last match counts. */
const PAGES = /.*^Pages:\s+(\d+)$(.*)/ms;
const PAGE = /^Page\s+(\d+) size:\s+(\S+) x (\S+) pts.*\nPage\s+\d+ rot:\s+(\d+)$/gm;

/** Parses the output of pdfinfo. The size is that of the crop box, before the page is rotated. */
function parsePages(stdout: string): Pages {
  const [, count, rest = ''] = PAGES.exec(stdout) ?? [];
  const pages = [...rest.matchAll(PAGE)].map(([, number, across, down, rotation]): Page => {
    const isTurned = Number(rotation) % 180 === 90; // another rotation is ignored
    const [width, height] = [Number(isTurned ? down : across), Number(isTurned ? across : down)];
    return { index: Number(number) - 1, width, height };
  });
  return {
    pages: pages.filter(({ width = 0, height = 0 }) => width > 0 && height > 0),
    pageCount: Number(count),
  };
}
