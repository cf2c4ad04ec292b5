import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What ExifTool finds in files: every group of tags, so that nothing hides under a name nobody asked for. */

const run = promisify(execFile);

/** Groups that describe the file on disk, or are worked out from the others. */
const NOT_IN_THE_FILE = ['SourceFile', 'ExifTool', 'System', 'File', 'Composite'];

/** Tags that are the format itself: how it is laid out, not what it was made of or by whom. */
const STRUCTURE: Readonly<Record<string, RegExp>> = {
  PNG: /^(ImageWidth|ImageHeight|BitDepth|ColorType|Compression|Filter|Interlace|Gamma|SRGBRendering|Palette|Transparency|BackgroundColor|WhitePoint[XY]|(Red|Green|Blue)[XY]|SignificantBits)$/,
  'PNG-pHYs': /^Pixel/,
  RIFF: /^(VP8Version|ImageWidth|ImageHeight|HorizontalScale|VerticalScale|WebP_Flags|AlphaIsUsed|AlphaPreprocessing|AlphaFiltering|AlphaCompression|AnimationLoopCount|BackgroundColor|FrameCount|Duration)$/,
  JFIF: /^(JFIFVersion|ResolutionUnit|[XY]Resolution)$/,
  Adobe: /^(DCTEncodeVersion|APP14Flags[01]|ColorTransform)$/,
  GIF: /^(GIFVersion|ImageWidth|ImageHeight|HasColorMap|ColorResolutionDepth|BitsPerPixel|BackgroundColor|AnimationIterations|FrameCount|Duration|TransparentColor)$/,
  PDF: /^(PDFVersion|Linearized|PageCount|CreateDate|ModifyDate)$/,
};
/** What our tools sign a PDF with, and the title that keeps the working file's name out of it. */
const SIGNATURES: Readonly<Record<string, RegExp>> = {
  'PDF:Title': /^(image|i\0? ?m\0? ?a\0? ?g\0? ?e\0? ?)$/,
  'PDF:Producer': /^(https:\/\/imagemagick\.org|cairo [\d.]+ \(https:\/\/cairographics\.org\))$/,
  'PDF:Creator': /^https:\/\/imagemagick\.org$/,
  'PDF:Author': /^https:\/\/imagemagick\.org$/,
};

export type Tags = Readonly<Record<string, unknown>>;

/** All tags of each file, as `Group:Name`, in the order of the paths. */
export async function readTags(paths: readonly string[]): Promise<Tags[]> {
  if (paths.length === 0) return [];
  // It ends with 1 when it finds nothing to say of one of them.
  const { stdout } = await run('exiftool', ['-json', '-G1', '-a', '-struct', '-u', ...paths], {
    maxBuffer: 2 ** 28,
  });
  const found = JSON.parse(stdout) as Tags[];
  return paths.map((path) => found.find(({ SourceFile }) => SourceFile === path) ?? {});
}

/** The tags that have no business in a picture whose metadata was removed. */
export function remainingMetadata(tags: Tags): string[] {
  return Object.entries(tags)
    .filter(([tag, value]) => {
      const [group = '', name = ''] = tag.split(':');
      if (NOT_IN_THE_FILE.includes(group)) return tag === 'File:Comment';
      return !STRUCTURE[group]?.test(name) && !SIGNATURES[tag]?.test(String(value));
    })
    .map(([tag]) => tag);
}
