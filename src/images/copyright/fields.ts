/**
 * @module The fields that `metadata=copyright` keeps: who made an image, and who may use it. They
 * are read from a file as texts, and written to a result as new blocks, so that nothing else of the
 * metadata is copied.
 */
import { isUtf8 } from 'node:buffer';
import { cleanText, escapeXml } from '../../base/text.ts';

/** Fields of EXIF by their tag (EXIF 2.32, 4.6.5); in a TIFF, in its first directory. */
export const EXIF_FIELDS = { 'exif:Artist': 0x013b, 'exif:Copyright': 0x8298 } as const;

/**
 * Fields of IPTC by their dataset in record 2 (IIM 4.2, section 6), and the field of XMP with the
 * same meaning (IPTC Photo Metadata Standard), for results that hold no IPTC.
 */
export const IPTC_FIELDS = {
  'iptc:By-line': { dataset: 80, xmp: 'dc:creator' },
  'iptc:Credit': { dataset: 110, xmp: 'photoshop:Credit' },
  'iptc:CopyrightNotice': { dataset: 116, xmp: 'dc:rights' },
} as const;

/** Fields of XMP by their type: a text, or a container (XMP part 1, 8.3 and 8.4; part 2, 8.5). */
export const XMP_FIELDS = {
  'dc:creator': 'Seq',
  'dc:rights': 'Alt',
  'photoshop:Credit': 'text',
  'xmpRights:Certificate': 'text',
  'xmpRights:Marked': 'text',
  'xmpRights:Owner': 'Bag',
  'xmpRights:UsageTerms': 'Alt',
  'xmpRights:WebStatement': 'text',
} as const;

export type Field = keyof typeof EXIF_FIELDS | keyof typeof IPTC_FIELDS | keyof typeof XMP_FIELDS;

/** A text of a field in a file. */
export interface FieldText {
  readonly field: Field;
  /** Undefined if it is too long, or not readable. */
  readonly text: string | undefined;
  /** Language of one of several alternatives (RFC 5646). */
  readonly language?: string | undefined;
}

/** What a file states about its copyright. */
export interface Copyright {
  readonly texts: readonly (FieldText & { readonly text: string })[];
  /** Whether the file has metadata that cannot be read, or too many or too long texts. */
  readonly isPartial: boolean;
}

/** Maximum bytes of a text. Usage terms have several hundred. */
export const MAX_TEXT_BYTES = 8 * 1024;
/** Maximum number of texts, and of their bytes as XML: they fit into 64 KiB, a JPEG segment. */
export const MAX_TEXTS = 200;
const MAX_TOTAL_BYTES = 40_000;

/** Selects the texts to keep. A text that is repeated in its field and language is left out. */
export function selectTexts(found: readonly FieldText[], isPartial: boolean): Copyright {
  const texts = new Map<string, Copyright['texts'][number]>();
  let bytes = 0;
  let lost = isPartial;
  for (const { field, text, language } of found) {
    if (text === '') continue;
    const id = `${field} ${language} ${text}`;
    if (text !== undefined && texts.has(id)) continue;
    bytes += Buffer.byteLength(escapeXml(text ?? ''));
    if (text === undefined || texts.size === MAX_TEXTS || bytes > MAX_TOTAL_BYTES) lost = true;
    else texts.set(id, { field, text, language });
  }
  return { texts: [...texts.values()], isPartial: lost };
}

/** Decodes a text of unknown encoding: UTF-8, or else Windows-1252, as of older programs. */
export function decodeText(bytes: Buffer): string | undefined {
  if (bytes.length > MAX_TEXT_BYTES) return undefined;
  return cleanText(new TextDecoder(isUtf8(bytes) ? 'utf-8' : 'windows-1252').decode(bytes));
}
