/** @module Unpacks an SVG, and rewrites it in one of two threads, because CSS can take 0.5 s. */
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { SVG_WORKER } from '../../folders.ts';
import { serviceErrorFrom } from '../../tables/errors.ts';
import { INPUTS } from '../../tables/formats.ts';
import { type RepairTarget, readAt } from '../containers/file.ts';
import { createThread, shareThreads } from '../threads.ts';
import { canRewrite } from './features.ts';
import { correctPictures } from './pictures.ts';
import { skipPreamble } from './svg-markup.ts';

/**
 * Unpacks the SVG at `path` in place, and rewrites constructs that librsvg renders wrongly.
 *
 * @throws {ServiceError} FILE_TOO_LARGE, CORRUPT_IMAGE, CONVERSION_TIMEOUT, DISK_FULL, or
 *   OVERLOADED if files or memory are exhausted
 */
export async function repairSvg(target: RepairTarget): Promise<undefined> {
  await unpackSvg(target);
  await correctPictures(target.file);
  await rewriteSvg(target);
}

const unpack = promisify(gunzip);
const GZIP = Buffer.from([0x1f, 0x8b]);

/** Unpacks an SVG that is compressed with gzip (`svgz`; SVG 1.1, appendix I). */
async function unpackSvg({ path, file, label, maxBytes, store }: RepairTarget): Promise<void> {
  if (!(await readAt(file, 0, GZIP.length)).bytes.equals(GZIP)) return;
  const packed = await readFile(path);
  const text = await unpack(packed, { maxOutputLength: maxBytes }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE'
      ? serviceErrorFrom(error, 'FILE_TOO_LARGE', label, maxBytes, true)
      : serviceErrorFrom(error, 'CORRUPT_IMAGE', label, INPUTS.svg.label);
  });
  await store(Math.max(0, text.length - packed.length));
  await writeFile(path, text);
}

/** Maximum size of an SVG to rewrite, in bytes. Larger ones are not changed. */
const MAX_BYTES = 1024 ** 2;

/** An SVG with entity declarations is not rewritten, because entities can contain any markup. */
const ENTITIES = '<!ENTITY';

/** An SVG in another encoding than UTF-8 is not changed. */
async function rewriteSvg({ path, file, label, store }: RepairTarget): Promise<void> {
  if ((await file.stat()).size > MAX_BYTES) return;
  const bytes = await readFile(path);
  const text = bytes.includes(ENTITIES) ? undefined : decodeUtf8(bytes);
  if (text === undefined) return;
  const sized = withFontSize(text);
  const rewritten = (await canRewrite(sized)) ? await rewriteInThread(sized, label) : sized;
  if (rewritten === text) return;
  await store(Math.max(0, Buffer.byteLength(rewritten) - bytes.length));
  await writeFile(path, rewritten);
}

/** Text, and lengths in font sizes. */
const FONT_SIZES = /[<:]text[\s>]|\d(?:em|ex|ch)\b/;
/** Name and attributes of the start tag of an element. */
const START_TAG = /^(<[^\s"'<>/]+)((?:[^"'<>]|"[^"]*"|'[^']*')*)>/;

/**
 * Gives the root element the initial font size of CSS, unless it has an attribute with another one.
 * That of librsvg is 12 pixels.
 */
function withFontSize(text: string): string {
  const root = skipPreamble(text);
  const [, name, attributes = ''] = START_TAG.exec(root) ?? [];
  if (name === undefined || /\sfont-size\s*=/.test(attributes) || !FONT_SIZES.test(text)) return text;
  return `${text.slice(0, text.length - root.length)}${name} font-size="16px"${root.slice(name.length)}`;
}

function decodeUtf8(bytes: Buffer): string | undefined {
  const declared = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)/.exec(bytes.toString('latin1', 0, 200))?.[1];
  if (declared && !/^(?:utf-?8|us-ascii)$/i.test(declared)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Maximum time for one text, in ms. Rewriting takes at most about 0.5 s of processor time. */
const REWRITE_TIMEOUT_MS = 10_000;

const rewriteInThread = shareThreads(() =>
  createThread<string, string>(SVG_WORKER, { ms: REWRITE_TIMEOUT_MS, work: 'SVGs' }),
);
