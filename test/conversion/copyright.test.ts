// @full: all fixtures, each in every other format
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { ALL_OUTPUT_TYPES, type InputType, OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { FIXTURE_FILES } from '../helpers/damage.ts';
import { convertWith } from '../helpers/engine.ts';
import { readTags, remainingMetadata, type Tags } from '../helpers/exif.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { execute } from '../helpers/process.ts';
import { useEngine } from '../helpers/service.ts';

/** What results keep, as ExifTool names and writes it, by its group. */
const KEPT = {
  exif: { 'IFD0:Artist': 'Zoë Ümlaut', 'IFD0:Copyright': '© 2026 Zoë <&>' },
  iptc: {
    'IPTC:By-line': ['Zoë Ümlaut', 'Yan'],
    'IPTC:Credit': 'Agency "Ä"',
    'IPTC:CopyrightNotice': '© Agency',
  },
  xmp: {
    'XMP-dc:Creator': ['Zoë', 'Yan & Co'],
    'XMP-dc:Rights': '© 2026 <Zoë>',
    'XMP-dc:Rights-de': 'Alle Rechte',
    'XMP-xmpRights:Marked': true,
    'XMP-xmpRights:Owner': ['Zoë'],
    'XMP-xmpRights:UsageTerms': 'Ask "first"',
    'XMP-xmpRights:WebStatement': 'https://example.com/?a=1&b=2',
    'XMP-xmpRights:Certificate': 'https://example.com/c',
  },
} as const;
/** IPTC in results that have no place for it, except where XMP states the same. */
const CREDIT = { 'XMP-photoshop:Credit': 'Agency "Ä"' };

/** What no result keeps. Each text starts with a word that no other part of a file has. */
const SECRETS = [
  '-GPSLatitude=48.2',
  '-GPSLatitudeRef=N',
  '-SerialNumber=Sekret-1',
  '-LensSerialNumber=Sekret-2',
  '-Make=Sekret-3',
  '-Model=Sekret-4',
  '-UserComment=Sekret-5',
  '-IPTC:City=Sekret-6',
  '-XMP-xmp:Label=Sekret-7',
  '-XMP-photoshop:City=Sekret-8',
  '-ImageDescription=Sekret-9',
  '-XMP-aux:SerialNumber=Sekret-10',
  '-XMP-exif:GPSLatitude=48.2',
  '-HostComputer=Sekret-11',
  '-Comment=Sekret-12',
  '-OwnerName=Sekret-13',
  '-PageName=Sekret-14',
  '-PNG:Author=Sekret-15',
];

/** Types to which ExifTool writes, with the metadata that they get. */
const SOURCES: Partial<Record<InputType, readonly (keyof typeof KEPT)[]>> = {
  jpg: ['exif', 'iptc', 'xmp'],
  tiff: ['exif', 'iptc', 'xmp'],
  png: ['exif', 'iptc', 'xmp'],
  webp: ['exif', 'xmp'],
  avif: ['exif', 'xmp'],
  heic: ['exif', 'xmp'],
  jxl: ['exif', 'xmp'],
};
/** Files with compressed metadata: ExifTool adds other metadata after it, which does not count. */
const COMPRESSED = ['private.jxl', 'turned.jxl'];
const WITH_COPYRIGHT = ALL_OUTPUT_TYPES.filter((format) => OUTPUTS[format].copyright);
const HOLDS_IPTC: readonly OutputType[] = ['jpg', 'tiff'];

/** Returns the bytes of a file with metadata; undefined if ExifTool cannot write to it. */
async function withMetadata(name: string, bytes: Buffer, type: InputType): Promise<Buffer | undefined> {
  const path = await writeTempFile(name, bytes);
  const kinds = SOURCES[type] ?? [];
  const tags = kinds.flatMap((kind) =>
    Object.entries(KEPT[kind]).flatMap(([tag, value]) => [value].flat().map((one) => `-${tag}=${one}`)),
  );
  const options = ['-q', '-q', '-m', '-overwrite_original', '-codedcharacterset=utf8'];
  const written = await execute('exiftool', [...options, ...SECRETS, ...tags, path]).catch(() => undefined);
  return written && readFile(path);
}

/** Returns the tags that a result must have. */
function expected(type: InputType, format: OutputType): Tags {
  const kinds = SOURCES[type] ?? [];
  const kept = kinds.filter((kind) => kind !== 'iptc' || HOLDS_IPTC.includes(format));
  const tags: Tags = Object.assign({}, ...kept.map((kind) => KEPT[kind]));
  return kinds.includes('iptc') && !HOLDS_IPTC.includes(format) ? { ...tags, ...CREDIT } : tags;
}

/** Tags of new blocks that state nothing about the image. */
const OF_BLOCKS = /^(IPTC:(CodedCharacterSet|ApplicationRecordVersion)|Photoshop:IPTCDigest|File:.*|ICC.*)$/;
/** Tags of the structure of TIFF, AVIF and JPEG XL. */
const STRUCTURE =
  /^(IFD\d:(ImageWidth|ImageHeight|BitsPerSample|Compression|PhotometricInterpretation|FillOrder|StripOffsets|StripByteCounts|Orientation|SamplesPerPixel|RowsPerStrip|[XY]Resolution|[XY]Position|PlanarConfiguration|ResolutionUnit|PageNumber|Predictor|ExtraSamples|SampleFormat|WhitePoint|PrimaryChromaticities|ColorMap|NewSubfileType|SubfileType|InkSet|NumberOfInks)|QuickTime:.*|Meta:.*|HEIF:.*|Jpeg2000:.*|JXL:.*|PNG:ProfileName|PNG:.*ICC.*)$/i;

describe('metadata=copyright', () => {
  const engine = useEngine(ALL_EXTRAS);

  for (const folder of ['images', 'extra']) {
    it(`keeps exactly the copyright and the profile of all fixtures in ${folder}`, async () => {
      /** Number of files by their types. */
      const counts = new Map<InputType, number>();
      const results: { label: string; path: string; tags: Tags; bytes: Buffer; notes: readonly string[] }[] =
        [];
      const files = FIXTURE_FILES.filter((file) => file.folder === folder && !COMPRESSED.includes(file.name));
      for (const { name, type, bytes: plain } of files) {
        const bytes = SOURCES[type] && (await withMetadata(name, plain, type));
        if (!bytes) continue;
        const count = counts.get(type) ?? 0;
        counts.set(type, count + 1);
        // Every other format, so that two files of a type have all of them.
        for (const format of WITH_COPYRIGHT.filter((_, at) => at % 2 === count % 2)) {
          const options = { format, quality: 80, metadata: 'copyright' } as const;
          const result = await convertWith(engine, { bytes, type }, options, async ({ path, notes }) => ({
            bytes: await readFile(path),
            notes,
          })).catch(() => undefined);
          if (!result) continue; // a kind that these tools cannot decode
          const path = await writeTempFile(`result.${format}`, result.bytes);
          results.push({ label: `${name} to ${format}`, path, tags: expected(type, format), ...result });
        }
      }
      const found = await readTags(results.map(({ path }) => path));
      const problems = results.flatMap(({ label, tags, bytes, notes }, at) => {
        const own = found[at] as Tags;
        const wrong = Object.entries(tags).filter(([tag, value]) => !isDeepStrictEqual(own[tag], value));
        const others = remainingMetadata(own).filter(
          (tag) => !(tag in tags) && !OF_BLOCKS.test(tag) && !STRUCTURE.test(tag),
        );
        const secrets = bytes.includes('Sekret') ? ['secret'] : [];
        const lost = notes.includes('metadata-partly-kept') ? ['note'] : [];
        const lines = [
          ...wrong.map(([tag]) => `${tag} is ${JSON.stringify(own[tag])}`),
          ...others,
          ...secrets,
          ...lost,
        ];
        return lines.map((line) => `${label}: ${line}`);
      });
      expect(problems).to.deep.equal([]);
      expect(results.length).to.be.above(30);
    });
  }
});
