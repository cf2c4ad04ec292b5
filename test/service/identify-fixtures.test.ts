// @full: all fixtures
/** @module Describes every fixture, beside sharp, ExifTool and the conversions. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import type { ImageDescription } from '../../src/conversion/identify.ts';
import { convert, expectSuccess, jsonOf, postImage } from '../helpers/client.ts';
import { EDGE_CASE_NAMES, expectedResult } from '../helpers/edge-cases.ts';
import { useServiceWith } from '../helpers/service.ts';

const FIXTURES = new URL('../../fixtures/', import.meta.url).pathname;

/** Names of colour spaces in sharp. */
const SPACES: Readonly<Record<string, string>> = {
  srgb: 'rgb',
  rgb16: 'rgb',
  scrgb: 'rgb',
  'b-w': 'grey',
  grey16: 'grey',
};
const BITS: Readonly<Record<string, number>> = { uchar: 8, ushort: 16, float: 32 };

/**
 * Facts in which the service and sharp differ, by file. sharp stores 10 bits in 16, and fewer than
 * 8 in 8. It decodes greys of AVIF to colours, and takes any extra channel for alpha. It counts
 * every image of a HEIF, and pages of a TIFF with a reduced resolution. It does not report EXIF or
 * IPTC of some formats.
 */
const DIFFERENCES: Readonly<Record<string, readonly string[]>> = {
  'broken-second.avif': ['count'],
  'declared-pq.avif': ['bits'],
  'ycgco-re.avif': ['bits'],
  'deep-greys-of-video.avif': ['space', 'bits'],
  'greys-of-video.avif': ['space'],
  'everything.gif': ['metadata'],
  'everything.png': ['metadata'],
  'everything.tiff': ['metadata'],
  'icc-lab.tiff': ['space'],
  'other-inks.tiff': ['space'],
  'sensor-mosaic.tiff': ['space'],
  'no-size.svg': ['width', 'height'], // only rendering shows its size
  'old-jpeg.tiff': ['alpha'],
  'ycbcr-subsampled.tiff': ['alpha'],
  'palette-extra-channel.tiff': ['alpha'],
  'planar-unused-channel.tiff': ['alpha'],
  'unused-channel.tiff': ['alpha'],
  'profile-cut.jpg': ['profile'],
  'profile-garbage.jpg': ['profile'],
  'profile-lengths.png': ['profile'],
  'signed-samples.tiff': ['bits'],
  'white-half-float.tiff': ['bits'],
  'white-is-zero-1.tiff': ['bits'],
  'white-is-zero-2.tiff': ['bits'],
  'white-is-zero-4.tiff': ['bits'],
  'with-preview.tiff': ['count'],
  'deep.heic': ['bits'],
  'primary.heic': ['alpha', 'count'],
  'turned.heic': ['orientation'], // sharp applies it
};

/** Sorts sides, because ExifTool does not turn images upright. */
const sorted = (...sides: (number | null)[]) => sides.map(Number).sort((a, b) => a - b);

/**
 * Returns the sides of the files in a folder by name, as ExifTool reads them. Of an icon, it would
 * read the first image.
 */
function sidesByExifTool(folder: string): Map<string, readonly number[]> {
  const options = ['-json', '-n', '-ImageWidth', '-ImageHeight', '--ext', 'ico', '--ext', 'cur'];
  // It exits with 1, because the folders also contain files that it does not know.
  const { stdout } = spawnSync('exiftool', [...options, FIXTURES + folder], { encoding: 'utf8' });
  const rows = JSON.parse(stdout) as { SourceFile: string; ImageWidth?: number; ImageHeight?: number }[];
  const sides = rows.map(({ SourceFile, ImageWidth = 0, ImageHeight = 0 }) => {
    return [basename(SourceFile), sorted(ImageWidth, Math.abs(ImageHeight))] as const;
  });
  return new Map(sides.filter(([, [shorter]]) => shorter));
}

describe('POST /identify for every fixture', () => {
  const service = useServiceWith({ EXTRA_INPUTS: 'all' });
  const identify = async (file: Uint8Array, query = ''): Promise<ImageDescription> =>
    jsonOf(await expectSuccess(postImage(`${service.base}/identify${query}`, file)));

  for (const folder of ['images', 'traps', 'extra']) {
    it(`agrees with sharp about the fixtures in ${folder}, or with ExifTool about the size of others`, async () => {
      const names = readdirSync(FIXTURES + folder).filter((name) => !/\.(?:json|md)$/.test(name));
      const sides = sidesByExifTool(folder);
      for (const name of names) {
        const file = readFileSync(`${FIXTURES}${folder}/${name}`);
        const image = await identify(file);
        expect(image.sha256, name).to.equal(createHash('sha256').update(file).digest('hex'));
        expect(image.bytes, name).to.equal(file.length);
        const seen = await sharp(file, { animated: true })
          .metadata()
          .catch(() => undefined);
        if (!seen) {
          if (sides.has(name)) expect(sorted(image.width, image.height), name).to.deep.equal(sides.get(name));
          continue;
        }
        const { orientation = 1, pages = 1, pageHeight = seen.height, exif, iptc, xmp } = seen;
        const [width, height] = orientation > 4 ? [pageHeight, seen.width] : [seen.width, pageHeight];
        const facts = {
          width,
          height,
          orientation,
          count: pages,
          alpha: seen.hasAlpha,
          space: SPACES[seen.space] ?? seen.space,
          bits: BITS[seen.depth],
          profile: seen.icc !== undefined,
          metadata: [exif && 'exif', iptc && 'iptc', xmp && 'xmp'].filter(Boolean),
        };
        const said = {
          width: image.width,
          height: image.height,
          orientation: image.orientation,
          count: Math.max(image.frames ?? 0, image.pages),
          alpha: image.alpha,
          space: image.colour_space,
          bits: image.bits,
          profile: image.profile !== null,
          metadata: [...image.metadata].sort(),
        };
        const keys = Object.keys(facts).filter((key) => !DIFFERENCES[name]?.includes(key)) as 'width'[];
        const pick = (all: typeof facts | typeof said) =>
          Object.fromEntries(keys.map((key) => [key, all[key]]));
        expect(pick(said as never), name).to.deep.equal(pick(facts));
      }
    });
  }

  it('predicts the notes of every fixture, except what only its pixels show', async () => {
    const ofPixels = ['alpha-flattened', 'partial-alpha-lost', 'truncated-input'];
    const unknownColours = ['p3.jxl']; // only a decoder can read its profile
    /** Returns the notes of a file as PNG: the stated ones of a trap, or those of its result. */
    const notesOf = async (name: string, file: Buffer): Promise<readonly string[] | undefined> => {
      if (EDGE_CASE_NAMES.includes(name)) {
        const { refused, notes = {} } = expectedResult(name);
        if (!refused) return notes.png ?? notes.any ?? [];
      }
      const { status, notes } = await convert(service.base, file, { format: 'png' });
      return status === 200 ? (notes?.split(', ') ?? []) : undefined;
    };
    const seen = new Set<string>();
    for (const folder of ['images', 'traps', 'extra'])
      for (const name of readdirSync(FIXTURES + folder)) {
        if (/\.(?:json|md)$/.test(name) || unknownColours.includes(name)) continue;
        const file = readFileSync(`${FIXTURES}${folder}/${name}`);
        const notes = await notesOf(name, file);
        if (!notes) continue;
        const { conversion } = await identify(file, '?format=png');
        const left = (all: readonly string[] = []) => all.filter((note) => !ofPixels.includes(note));
        expect(left(conversion?.notes), name).to.deep.equal(left(notes));
        for (const note of left(conversion?.notes)) seen.add(note);
      }
    expect([...seen].sort()).to.deep.equal([
      'colour-converted-to-srgb',
      'first-frame-only',
      'first-page-only',
      'hdr-removed',
    ]);
  });
});
