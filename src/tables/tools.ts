/** @module The programs that convert: how each is found, and what reports say about it. */

/** Identifies a tool and its version. */
export interface VersionProbe {
  /** Arguments that make the tool print its version. */
  readonly args: readonly string[];
  /** Matches the output of this tool only. The first group is the version. */
  readonly pattern: RegExp;
}

/** A program, or one of several with the same purpose. */
interface ToolRow {
  /** File names of the program. */
  readonly programs: readonly string[];
  readonly probe: VersionProbe;
  /** Name in messages. */
  readonly label: string;
  /** Name of the project, whose version reports state. */
  readonly project: string;
  readonly debianPackage: string;
  /**
   * Conversions that need it: of standard formats, of these with ImageMagick 6, or only of formats
   * that `EXTRA_INPUTS` or `EXTRA_OUTPUTS` enables; or none, because it only makes some faster or
   * better, or combines their results.
   */
  readonly neededFor: 'standard' | 'magick-6' | 'extras' | 'speed' | 'colours' | 'combine';
  /** What does not work without it. */
  readonly lacks: string;
  /** The same with ImageMagick 7, which does not need it. */
  readonly lacksWith7?: string;
  /** Configuration files, texts and fonts that only this tool reads, besides its libraries. */
  readonly reads?: readonly string[];
  /** Variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** What its fork server loads before the first job: see `prepare` in fork-server.c. */
  readonly prepare?: string;
}

/** Tools by the name that plans use. */
export type ToolName =
  | ('magick' | 'rsvg' | 'heif' | 'dwebp' | 'cwebp' | 'img2webp' | 'djxl' | 'cjxl' | 'avifenc')
  | ('pngquant' | 'pdfinfo' | 'pdftocairo' | 'qpdf');

/** Fonts and their configuration, and the character maps of poppler. */
const FONTS = ['/etc/fonts', '/var/cache/fontconfig', '/usr/share', '/usr/local/share'];

/** Returns the names of a program that is known by the name of its file. */
const named = (program: string) => ({ programs: [program], label: program });

const LIBWEBP = { project: 'libwebp', debianPackage: 'webp' };
const LIBJXL = { project: 'libjxl', debianPackage: 'libjxl-tools', neededFor: 'extras' } as const;
const POPPLER = {
  probe: { args: ['-v'], pattern: /^pdf\w+ version (\d\S*)/m },
  project: 'poppler',
  debianPackage: 'poppler-utils',
  neededFor: 'extras',
  lacks: 'no PDF to read',
} as const;

/** One row per tool. */
export const TOOLS: Readonly<Record<ToolName, ToolRow>> = {
  magick: {
    programs: ['magick', 'convert'],
    // Other programs are also named `convert`. Only ImageMagick prints this line.
    probe: { args: ['-version'], pattern: /^Version: ImageMagick (([67])\.\S+)/m },
    label: 'ImageMagick 6 or 7',
    project: 'ImageMagick',
    debianPackage: 'imagemagick',
    neededFor: 'standard',
    lacks: 'only SVG to PNG and PDF works',
    reads: ['/etc', '/usr/share', '/usr/local/share'].flatMap((folder) =>
      [6, 7].map((major) => `${folder}/ImageMagick-${major}`),
    ),
    prepare: 'magick',
  },
  // librsvg, which renders SVG.
  rsvg: {
    ...named('rsvg-convert'),
    probe: { args: ['--version'], pattern: /^rsvg-convert(?: version)? (\d\S*)/m },
    project: 'librsvg',
    debianPackage: 'librsvg2-bin',
    neededFor: 'standard',
    lacks: 'no SVG',
    reads: FONTS,
    prepare: 'fontconfig',
  },
  // Decodes AVIF and HEIC.
  heif: {
    ...named('heif-convert'),
    probe: { args: ['--help'], pattern: /libheif version: (\S+)/ },
    project: 'libheif',
    debianPackage: 'libheif-examples',
    neededFor: 'magick-6',
    lacks: 'no AVIF', // ImageMagick 6 reads it with wrong colours
  },
  // Decodes WebP at a smaller size.
  dwebp: {
    ...named('dwebp'),
    ...LIBWEBP,
    probe: { args: ['-version'], pattern: /^(?:WebP Decoder version: )?(\d[\d.]*)/m },
    neededFor: 'speed',
    lacks: 'thumbnails of large WebP take three times as long',
  },
  // Encodes WebP without changing the colours of invisible pixels.
  cwebp: {
    ...named('cwebp'),
    ...LIBWEBP,
    probe: { args: ['-version'], pattern: /^(?:WebP Encoder version: )?(\d[\d.]*)/m },
    neededFor: 'magick-6',
    lacks: 'lossless WebP changes the colours of invisible pixels', // ImageMagick 6 cannot keep them
  },
  // Assembles animated WebP.
  img2webp: {
    ...named('img2webp'),
    ...LIBWEBP,
    probe: { args: ['-version'], pattern: /^(?:WebP Encoder version: )?(\d[\d.]*)/m },
    neededFor: 'magick-6',
    lacks: 'no animated WebP', // ImageMagick 6 writes it wrongly
    lacksWith7: 'animated WebP takes up to twice as long, and can be several times larger',
  },
  djxl: {
    ...named('djxl'),
    ...LIBJXL,
    probe: { args: ['--version'], pattern: /^djxl v(\S+)/m },
    lacks: 'no JPEG XL to read',
  },
  cjxl: {
    ...named('cjxl'),
    ...LIBJXL,
    probe: { args: ['--version'], pattern: /^cjxl v(\S+)/m },
    lacks: 'no JPEG XL to write',
  },
  avifenc: {
    ...named('avifenc'),
    probe: { args: ['--version'], pattern: /^Version: (\d\S*)/m },
    project: 'libavif',
    debianPackage: 'libavif-bin',
    neededFor: 'extras',
    lacks: 'no AVIF to write',
  },
  // Selects the colours of a PNG.
  pngquant: {
    ...named('pngquant'),
    probe: { args: ['--version'], pattern: /^(\d\S*) \(\w+ \d{4}\)$/m },
    project: 'pngquant',
    debianPackage: 'pngquant',
    neededFor: 'colours',
    lacks: 'a PNG of few `colors` looks worse',
    env: { OMP_NUM_THREADS: '1' }, // as many threads as processors would add up differences in another order
  },
  // Reads the number of pages of a PDF, and their sizes.
  pdfinfo: { ...named('pdfinfo'), ...POPPLER },
  // Renders pages of a PDF.
  pdftocairo: { ...named('pdftocairo'), ...POPPLER, reads: FONTS, prepare: 'fontconfig' },
  // Joins PDFs, one after the other, so that its memory does not grow with the pictures.
  qpdf: {
    ...named('qpdf'),
    probe: { args: ['--version'], pattern: /^qpdf version (\d\S*)/m },
    project: 'qpdf',
    debianPackage: 'qpdf',
    neededFor: 'combine',
    lacks: 'several images cannot become one PDF',
  },
};

/** Settings with the path of a tool. The service does not start if it is another program. */
export const PATH_SETTINGS = [
  ['magick', 'MAGICK_BIN'],
  ['rsvg', 'RSVG_BIN'],
] as const;

/** All tools, in the order of the table. */
export const TOOL_NAMES = Object.keys(TOOLS) as readonly ToolName[];
