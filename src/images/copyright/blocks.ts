/** @module Encodes the copyright as new blocks of EXIF, IPTC and XMP. Pure. */
import type { OutputType } from '../../tables/formats.ts';
import { writeExif } from './exif-fields.ts';
import { type Copyright, type FieldText, IPTC_FIELDS } from './fields.ts';
import { writeIptc } from './iptc.ts';
import { writeXmp } from './xmp.ts';

/** Blocks with nothing but the copyright: undefined if empty, or if the format cannot hold it. */
export interface CopyrightBlocks {
  readonly exif: Buffer | undefined;
  readonly iptc: Buffer | undefined;
  readonly xmp: Buffer | undefined;
}

/** Formats with a place for IPTC. In others, XMP gets the fields of IPTC that it lacks. */
const HOLDS_IPTC: readonly OutputType[] = ['jpg', 'tiff'];

/** Encodes the copyright for a format. */
export function encodeCopyright({ texts }: Copyright, format: OutputType): CopyrightBlocks {
  const holdsIptc = HOLDS_IPTC.includes(format);
  return {
    exif: writeExif(texts),
    iptc: holdsIptc ? writeIptc(texts) : undefined,
    xmp: writeXmp(holdsIptc ? texts : [...texts, ...iptcAsXmp(texts)]),
  };
}

/** Returns the texts of IPTC as those of XMP, for fields that XMP lacks. */
function iptcAsXmp(texts: Copyright['texts']): FieldText[] {
  return Object.entries(IPTC_FIELDS).flatMap(([iptc, { xmp: field }]) =>
    texts.some((one) => one.field === field)
      ? []
      : texts.filter((one) => one.field === iptc).map(({ text }) => ({ field, text })),
  );
}
