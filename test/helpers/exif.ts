/** @module Reads metadata with ExifTool: every group of tags, including unknown ones. */
import { readFile } from 'node:fs/promises';
import { writeTempFile } from './hooks.ts';
import { execute } from './process.ts';

/** Groups that describe the file on disk or are derived from other tags. */
const NOT_IN_THE_FILE = ['SourceFile', 'ExifTool', 'System', 'File', 'Composite'];

/** Tags that describe the structure of the format, not the origin of the image. */
const STRUCTURE: Readonly<Record<string, RegExp>> = {
  PNG: /^(ImageWidth|ImageHeight|BitDepth|ColorType|Compression|Filter|Interlace|Gamma|SRGBRendering|Palette|Transparency|BackgroundColor|WhitePoint[XY]|(Red|Green|Blue)[XY]|SignificantBits)$/,
  'PNG-pHYs': /^Pixel/,
  RIFF: /^(VP8Version|ImageWidth|ImageHeight|HorizontalScale|VerticalScale|WebP_Flags|AlphaIsUsed|AlphaPreprocessing|AlphaFiltering|AlphaCompression|AnimationLoopCount|BackgroundColor|FrameCount|Duration)$/,
  JFIF: /^(JFIFVersion|ResolutionUnit|[XY]Resolution)$/,
  Adobe: /^(DCTEncodeVersion|APP14Flags[01]|ColorTransform)$/,
  GIF: /^(GIFVersion|ImageWidth|ImageHeight|HasColorMap|ColorResolutionDepth|BitsPerPixel|BackgroundColor|AnimationIterations|FrameCount|Duration|TransparentColor)$/,
  PDF: /^(PDFVersion|Linearized|PageCount|CreateDate|ModifyDate)$/,
};
/** Signatures of the tools in PDFs, and the title that replaces the name of the working file. */
const SIGNATURES: Readonly<Record<string, RegExp>> = {
  'PDF:Title': /^(image|i\0? ?m\0? ?a\0? ?g\0? ?e\0? ?)$/,
  'PDF:Producer': /^(https:\/\/imagemagick\.org|cairo [\d.]+ \(https:\/\/cairographics\.org\))$/,
  'PDF:Creator': /^https:\/\/imagemagick\.org$/,
  'PDF:Author': /^https:\/\/imagemagick\.org$/,
};

/** Tags of a file as `Group:Name`. */
export type Tags = Readonly<Record<string, unknown>>;

/** Reads all tags of each file, in the order of the paths. */
export async function readTags(paths: readonly string[]): Promise<Tags[]> {
  if (paths.length === 0) return [];
  // ExifTool exits with 1 if one of the files has no tags.
  const { stdout } = await execute('exiftool', ['-json', '-G1', '-a', '-struct', '-u', ...paths], {
    maxBuffer: 2 ** 28,
  });
  const found = JSON.parse(stdout) as Tags[];
  return paths.map((path) => found.find(({ SourceFile }) => SourceFile === path) ?? {});
}

export async function tagsOf(file: Uint8Array, format = 'jpg'): Promise<Tags> {
  const [tags = {}] = await readTags([await writeTempFile(`file.${format}`, file)]);
  return tags;
}

/** Adds tags to a file, which are options of ExifTool. */
export async function withTags(name: string, file: Uint8Array, ...tags: readonly string[]): Promise<Buffer> {
  const path = await writeTempFile(name, file);
  await execute('exiftool', ['-q', '-m', '-overwrite_original', ...tags, path]);
  return readFile(path);
}

/** Returns the tags that must not remain after metadata was stripped. */
export function remainingMetadata(tags: Tags): string[] {
  return Object.entries(tags)
    .filter(([tag, value]) => {
      const [group = '', name = ''] = tag.split(':');
      if (NOT_IN_THE_FILE.includes(group)) return tag === 'File:Comment';
      return !STRUCTURE[group]?.test(name) && !SIGNATURES[tag]?.test(String(value));
    })
    .map(([tag]) => tag);
}
