/** @module Inspects a PDF with pdfinfo, before it is planned: the number of its pages, and the sizes of those that it needs. */
import type { Config } from '../config.ts';
import type { ImageFacts, Page } from '../images/image-info.ts';
import type { RunCommand } from '../process/command.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { conversionLimit } from './accept-jobs.ts';
import { invalidOutputError, toServiceError } from './output/tool-errors.ts';
import { keepsAllPages } from './plan/size.ts';
import { type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { ConversionInput } from './types.ts';

export interface Inspection {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly run: RunCommand;
  readonly signal: AbortSignal;
}

type Pages = Required<Pick<ImageFacts<'pdf'>, 'pages' | 'pageCount'>>;

/** Pages whose sizes one command prints: 60 bytes for each, of which 64 KiB are kept. */
const PAGES_AT_ONCE = 500;
/** Maximum time, in ms. Clients share the places for inspections. A file with 10 000 pages takes a fraction of it. */
const MAX_MS = 5000;
/** Maximum memory, in bytes. A file of 10 MB with 10 000 pages takes a hundredth of it. */
const MAX_MEMORY = 1024 ** 3;

/**
 * Reads the number of pages, and the size of the first page, or of all if they are wanted and permitted.
 *
 * @returns no pages if pdfinfo is not installed
 * @throws {ServiceError} FILE_ENCRYPTED, CORRUPT_IMAGE, or an error about a limit
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function inspectPdf(
  source: ConversionInput,
  targets: readonly ConvertOptions[],
  { config, toolchain: { pdfinfo }, run, signal }: Inspection,
): Promise<ImageFacts<'pdf'>> {
  if (!pdfinfo) return {};
  const limit = config.CONVERT_TIMEOUT_MS > MAX_MS ? { ms: MAX_MS } : conversionLimit(config);
  const deadline = performance.now() + limit.ms;
  const readPages = async (from: number, to: number): Promise<Pages> => {
    const { stdout } = await run({
      ...{ file: pdfinfo.path, args: ['-f', String(from), '-l', String(to), INPUT_FILE] },
      ...{ cwd: source.folder, memoryBytes: MAX_MEMORY, signal },
      timeoutMs: Math.max(1, Math.ceil(deadline - performance.now())),
    }).catch((error) => {
      throw toServiceError(error, 'pdfinfo', source, 'png', limit);
    });
    const found = parsePages(stdout);
    if (found.pages.length <= to - from) throw invalidOutputError('pages without a size', source);
    return found;
  };
  const { pages: first, pageCount } = await readPages(1, 1);
  const pages = [...first];
  const wanted = pageCount <= config.MAX_FRAMES && targets.some(keepsAllPages) ? pageCount : 1;
  while (pages.length < wanted) {
    const to = Math.min(wanted, pages.length + PAGES_AT_ONCE);
    pages.push(...(await readPages(pages.length + 1, to)).pages);
  }
  return { pages, pageCount };
}

/** The lines about pages. What precedes them quotes the file, which can imitate them, so the last ones count. */
const PAGES = /.*^Pages:\s+(\d+)$(.*)/ms;
const PAGE = /^Page\s+(\d+) size:\s+(\S+) x (\S+) pts.*\nPage\s+\d+ rot:\s+(\d+)$/gm;

/** Parses the output of pdfinfo. The size is that of the crop box, before the page is rotated. */
function parsePages(stdout: string): Pages {
  const [, count, rest = ''] = PAGES.exec(stdout) ?? [];
  const pages = [...rest.matchAll(PAGE)].map(([, number, across, down, rotation]): Page => {
    const isTurned = Number(rotation) % 180 !== 0;
    const [width, height] = [Number(isTurned ? down : across), Number(isTurned ? across : down)];
    return { index: Number(number) - 1, width, height };
  });
  return {
    pages: pages.filter(({ width = 0, height = 0 }) => width > 0 && height > 0),
    pageCount: Number(count),
  };
}
