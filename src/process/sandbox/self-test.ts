/** @module Self-tests: small conversions that show whether the tools work in a sandbox. */
import { mkdir, mkdtemp, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFolder } from '../../files/workspace.ts';
import { TOOLS, type ToolName, type VersionProbe } from '../../tables/tools.ts';
import { PROBE_TIMEOUT_MS, type RunCommand } from '../command.ts';
import { ONE_PIXEL } from '../policy.ts';
import { installedTools, type Magick, type Toolchain } from '../toolchain.ts';

/** A conversion of a small image, which shows whether a tool works. */
export interface Trial {
  /** Contents of the files in the working directory, by name. */
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  readonly args: readonly string[];
  readonly stdin?: string;
  /** Name of the file that gets the standard output. */
  readonly stdout?: string;
  /** Name of the file that the tool must write. */
  readonly result: string;
  /** Whether the tool must be able to make files other than the result. */
  readonly makesFiles?: boolean;
}

/** A tool that the sandbox must support. */
export interface TestedTool {
  /** Absolute path. */
  readonly path: string;
  /** Files and folders that only this tool reads, if they exist. Each makes its start slower. */
  readonly reads?: readonly string[];
  /** The tool must pass this probe if it fails its trial even without a sandbox. */
  readonly versionProbe: VersionProbe;
  /** The tool must pass this trial. */
  readonly trial: Trial;
}

/** AVIF of 16 by 16 pixels, encoded by heif-enc of libheif 1.15. */
const SMALL_AVIF = Buffer.from(
  [
    'AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAA',
    'AAAAAA5waXRtAAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAEOAAEAAAAAAAAAHwAAACNpaW5mAAAAAAABAAAAFWluZmUC',
    'AAAAAAEAAGF2MDEAAAAAamlwcnAAAABLaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAA',
    'AAAQAAAAEAAAABBwaXhpAAAAAAMICAgAAAAXaXBtYQAAAAAAAAABAAEEgYIDhAAAACdtZGF0EgAKCRgM/9ggQEDQgDIQHkA/',
    '///FAKPUaGbI2kFSjw==',
  ].join(''),
  'base64',
);
/** JPEG XL of 16 by 16 pixels, encoded by cjxl 0.7. */
const SMALL_JXL = Buffer.from(
  [
    '/wpDQELl3iqCABKIAgBcAV3lEgAAFSqjjBu8nOv58kOHxbSN6wxttW1hSaLIODZJJ3BIEkvA2IV5wHieHzNvM7n3GBuqHIYmGEIm',
    'hlJJIjFGt/2JEiAAbZ8N4BEADgDAAgCABoByAw==',
  ].join(''),
  'base64',
);
/** Lossy WebP of 16 by 16 pixels, encoded by cwebp 1.2. */
const SMALL_WEBP = Buffer.from(
  'UklGRkoAAABXRUJQVlA4ID4AAAAwAgCdASoQABAAAgA0JbACdGuA/wAFu1l1EAD+9YZ6ZaqopAwE3//bTZX7eTX/3CMKP/+5zPdRWtkLpAAAAA==',
  'base64',
);
/** PDF with text, so that poppler loads fonts. */
const SMALL_PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 16 16]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 28>>stream
BT /F 12 Tf 2 2 Td (a) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
`;
/** PDF with the table of its objects, without which qpdf exits with a warning. */
const WHOLE_PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 16 16]>>endobj
xref
0 4
0000000000 65535 f\r
0000000009 00000 n\r
0000000052 00000 n\r
0000000101 00000 n\r
trailer<</Root 1 0 R/Size 4>>
startxref
162
%%EOF
`;
/** SVG with text, so that librsvg loads fonts, and with a filter. */
const SMALL_SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">
<filter id="f"><feGaussianBlur stdDeviation="1"/></filter>
<rect width="9" height="9" filter="url(#f)"/><text y="12">a</text></svg>`;

/** Trials of the formats and operations that load libraries or start threads. */
const TRIALS: Readonly<Record<Exclude<ToolName, 'magick'>, Trial>> = {
  rsvg: trial({}, '-f png -o out.png', { stdin: SMALL_SVG }),
  heif: trial({ in: SMALL_AVIF }, 'in out.png'),
  dwebp: trial({ in: SMALL_WEBP }, 'in -resize 1 1 -mt -ppm -o out.ppm'),
  cwebp: trial({ in: ONE_PIXEL }, '-quiet -lossless -exact in -o out.webp'),
  img2webp: trial({ in: ONE_PIXEL }, '-d 10 in -d 20 in -o out.webp'),
  djxl: trial({ in: SMALL_JXL }, 'in out.png --num_threads=0', { result: 'out.png' }),
  cjxl: trial({ 'in.png': ONE_PIXEL }, '--num_threads=0 --container=1 in.png out'),
  avifenc: trial({ 'in.png': ONE_PIXEL }, '-c aom -j 1 -s 9 in.png out.avif'),
  pngquant: trial({ 'in.png': ONE_PIXEL }, '--output - 2 -- in.png', {
    stdout: 'out.png',
    result: 'out.png',
  }),
  pdfinfo: trial({ in: SMALL_PDF }, 'in'), // it only prints
  pdftocairo: trial({ in: SMALL_PDF }, '-png -singlefile in out', { result: 'out.png' }),
  qpdf: trial({ in: WHOLE_PDF }, '--empty --pages in in -- out.pdf'),
};

/** Returns a trial with a command line. By default, its last word is the file that is written. */
function trial(files: Trial['files'], line: string, others: Partial<Trial> = {}): Trial {
  const args = line.split(' ');
  return { files, args, result: args.at(-1) as string, ...others };
}

/** Returns a trial that writes and reads back each format, as far as this ImageMagick can. */
function magickTrial({ reads, writes, major }: Magick): Trial {
  const both = ['JPEG', 'GIF', 'BMP', 'WEBP'].filter((coder) => reads.has(coder) && writes.has(coder));
  // With version 6, heif-convert decodes AVIF.
  const avif = major === 7 && reads.has('AVIF') ? ['AVIF:in.avif'] : [];
  return {
    files: { 'in.png': ONE_PIXEL, 'in.avif': SMALL_AVIF },
    args: [
      // ImageMagick uses threads from 128 rows on.
      ...'-limit thread 2 PNG:in.png -resize 256x256! -resize 20x20!'.split(' '),
      ...both.flatMap((coder) => ['-write', `${coder}:made-${coder}`]),
      ...both.map((coder) => `${coder}:made-${coder}`),
      ...avif,
      '-append',
      'PNG:out.png',
    ],
    result: 'out.png',
    makesFiles: true,
  };
}

/** Returns the trials of the installed tools, by name. */
export function listTrials(toolchain: Toolchain): (TestedTool & { readonly name: ToolName })[] {
  return installedTools(toolchain).map(({ name, path }) => {
    const trial = name === 'magick' ? magickTrial(toolchain.magick as Magick) : TRIALS[name];
    const { reads = [], probe: versionProbe } = TOOLS[name];
    return { name, path, reads, versionProbe, trial };
  });
}

/** Runs a trial in a temporary folder in `home`. Returns whether the tool wrote its file. */
export async function runTrial(
  file: string,
  { files, args, stdin = '', stdout, result, makesFiles = false }: Trial,
  run: RunCommand,
  home: string,
): Promise<boolean> {
  const folder = await mkdtemp(join(home, 'trial-'));
  try {
    const cwd = join(folder, 'job');
    await mkdir(cwd);
    await Promise.all(Object.entries(files).map(([name, bytes]) => writeFile(join(cwd, name), bytes)));
    // As in every conversion, the input is outside the folder that the tool can write to.
    const input = join(folder, 'stdin');
    await writeFile(input, stdin);
    await run({
      file,
      args,
      cwd,
      outputs: makesFiles ? undefined : [result],
      timeoutMs: PROBE_TIMEOUT_MS,
      stdin: input,
      stdout,
    });
    return (await stat(join(cwd, result))).size > 0;
  } catch {
    return false;
  } finally {
    await removeFolder(folder);
  }
}
