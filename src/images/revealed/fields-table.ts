/** @module What metadata gives away, as data: kinds, and their fields in EXIF, IPTC and XMP. */

/** Kinds of what metadata can give away, in the order in which they are listed. */
export const REVEALED_KINDS = [
  'place',
  'time',
  'camera',
  'owner',
  'software',
  'comment',
  'thumbnail',
] as const;

/** Kind of what metadata gives away. */
export type RevealedKind = (typeof REVEALED_KINDS)[number];

/** Returns the kinds that a result lost and has; undefined if there are none. */
export const describeKinds = <Kind>({
  removed,
  kept,
}: {
  readonly removed: readonly Kind[];
  readonly kept: readonly Kind[];
}) => (removed.length + kept.length > 0 ? { removed, kept } : undefined);

/** A value in the metadata of a file. */
export interface RevealedValue {
  readonly kind: RevealedKind;
  /** Standard of the value. `text`: a comment of the format itself, such as a text of a PNG. */
  readonly source: 'exif' | 'iptc' | 'xmp' | 'text';
  /** Name of the field, as ExifTool has it; for XMP with the usual prefix. */
  readonly name: string;
  readonly value: string;
}

/** Fields by the number of a tag or a dataset. */
type Fields = Readonly<Record<number, readonly [kind: RevealedKind, name: string]>>;

/** Tags of texts in the first directory of EXIF or TIFF, and those of Windows in UTF-16. */
export const IMAGE_TAGS: Fields = {
  270: ['comment', 'ImageDescription'],
  271: ['camera', 'Make'],
  272: ['camera', 'Model'],
  305: ['software', 'Software'],
  306: ['time', 'ModifyDate'],
  315: ['owner', 'Artist'],
  316: ['software', 'HostComputer'],
  33432: ['owner', 'Copyright'],
  50735: ['camera', 'CameraSerialNumber'],
};
export const WINDOWS_TAGS: Fields = {
  40091: ['comment', 'XPTitle'],
  40092: ['comment', 'XPComment'],
  40093: ['owner', 'XPAuthor'],
  40094: ['comment', 'XPKeywords'],
  40095: ['comment', 'XPSubject'],
};
/** Tags in the directory of EXIF (EXIF 2.32, 4.6.5), and the comment, after its encoding. */
export const CAMERA_TAGS: Fields = {
  36867: ['time', 'DateTimeOriginal'],
  36868: ['time', 'CreateDate'],
  42032: ['owner', 'OwnerName'],
  42033: ['camera', 'SerialNumber'],
  42035: ['camera', 'LensMake'],
  42036: ['camera', 'LensModel'],
  42037: ['camera', 'LensSerialNumber'],
};
export const USER_COMMENT = 37510;
/** Tags with a text in the directory of the place (EXIF 2.32, 4.6.6). */
export const PLACE_TAGS: Fields = { 29: ['time', 'GPSDateStamp'] };

/** Datasets of IPTC (IIM 4.2, section 6). */
export const IPTC_DATASETS: Fields = {
  5: ['comment', 'ObjectName'],
  25: ['comment', 'Keywords'],
  55: ['time', 'DateCreated'],
  60: ['time', 'TimeCreated'],
  62: ['time', 'DigitalCreationDate'],
  63: ['time', 'DigitalCreationTime'],
  65: ['software', 'OriginatingProgram'],
  80: ['owner', 'By-line'],
  90: ['place', 'City'],
  92: ['place', 'Sub-location'],
  95: ['place', 'Province-State'],
  101: ['place', 'Country-PrimaryLocationName'],
  105: ['comment', 'Headline'],
  110: ['owner', 'Credit'],
  115: ['owner', 'Source'],
  116: ['owner', 'CopyrightNotice'],
  118: ['owner', 'Contact'],
  120: ['comment', 'Caption-Abstract'],
  122: ['owner', 'Writer-Editor'],
};

/** Properties of XMP. */
export const XMP_PROPERTIES: Readonly<Record<string, RevealedKind>> = {
  'exif:GPSLatitude': 'place',
  'exif:GPSLongitude': 'place',
  'exif:GPSAltitude': 'place',
  'photoshop:City': 'place',
  'photoshop:State': 'place',
  'photoshop:Country': 'place',
  'Iptc4xmpCore:Location': 'place',
  'xmp:CreateDate': 'time',
  'xmp:ModifyDate': 'time',
  'xmp:MetadataDate': 'time',
  'photoshop:DateCreated': 'time',
  'exif:DateTimeOriginal': 'time',
  'exif:DateTimeDigitized': 'time',
  'tiff:DateTime': 'time',
  'tiff:Make': 'camera',
  'tiff:Model': 'camera',
  'aux:SerialNumber': 'camera',
  'aux:Lens': 'camera',
  'aux:LensSerialNumber': 'camera',
  'exifEX:BodySerialNumber': 'camera',
  'exifEX:LensModel': 'camera',
  'exifEX:LensSerialNumber': 'camera',
  'dc:creator': 'owner',
  'dc:rights': 'owner',
  'photoshop:Credit': 'owner',
  'photoshop:Source': 'owner',
  'photoshop:CaptionWriter': 'owner',
  'xmpRights:Owner': 'owner',
  'xmpRights:UsageTerms': 'owner',
  'xmpRights:WebStatement': 'owner',
  'aux:OwnerName': 'owner',
  'exifEX:CameraOwnerName': 'owner',
  'tiff:Artist': 'owner',
  'tiff:Copyright': 'owner',
  'xmp:CreatorTool': 'software',
  'tiff:Software': 'software',
  'dc:title': 'comment',
  'dc:description': 'comment',
  'dc:subject': 'comment',
  'photoshop:Headline': 'comment',
  'exif:UserComment': 'comment',
  'tiff:ImageDescription': 'comment',
};

/** Texts of a PNG by keyword (W3C PNG, third edition, 11.3.3.1). Others are comments. */
export const PNG_KEYWORDS: Readonly<Record<string, RevealedKind>> = {
  Author: 'owner',
  Copyright: 'owner',
  'Creation Time': 'time',
  Software: 'software',
  Source: 'camera',
};
