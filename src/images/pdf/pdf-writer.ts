/**
 * @module Writes a PDF with one picture on each page (ISO 32000-1). ImageMagick's writer encodes
 * all pages alike, knows no soft mask, and encodes every JPEG anew. A library for PDF would hold
 * all pictures in memory, or decode them. This one copies encoded pictures from files to a file, in
 * blocks.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { writeAt } from '../containers/file.ts';
import { type Area, type Orientation, type Size, turnArea } from '../image-info.ts';

/** A picture whose bytes a PDF contains as they are. */
export interface PdfPicture extends Size {
  readonly bits: 1 | 2 | 4 | 8 | 16;
  /** A palette has one byte for each of red, green and blue. */
  readonly colours: 'grey' | 'rgb' | 'cmyk' | { readonly palette: Buffer };
  /** A colour profile for pixels of these colours. */
  readonly profile?: Buffer | undefined;
  /** Whether 0 is the most of a colour, as in CMYK of a JPEG. */
  readonly inverted?: boolean;
  /** Name of the filter that decodes the bytes, and its parameters. */
  readonly filter: string;
  readonly parameters?: string;
  readonly bytes: AsyncIterable<Buffer> | Iterable<Buffer>;
}

/** A page in points, and the place of its picture from the top left corner. */
export interface PdfPage {
  readonly page: Size;
  readonly picture: Area;
  /** What is done to the stored pixels. */
  readonly orientation: Orientation;
}

/** Numbers of components, and names of the colour spaces without a profile. */
const COLOURS = {
  grey: { components: 1, name: '/DeviceGray' },
  rgb: { components: 3, name: '/DeviceRGB' },
  cmyk: { components: 4, name: '/DeviceCMYK' },
} as const;

/** Turns a corner of the unit square of a picture, whose origin is the lower left one (8.3.3). */
function turnCorner(x: number, y: number, orientation: Orientation): { x: number; y: number } {
  const corner = { x, y: 1 - y, width: 0, height: 0 };
  const turned = turnArea(corner, { width: 1, height: 1 }, orientation);
  return { x: turned.x, y: 1 - turned.y };
}

/** Reference to an object of the file. */
type Reference = `${number} 0 R`;

/** Writes the objects of a PDF one after the other. */
export class PdfWriter {
  readonly #file: FileHandle;
  /** Offset of each object by its number; that of 0 is not used. */
  readonly #offsets: number[] = [0];
  readonly #pages: Reference[] = [];
  #length = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /**
   * Writes a new file.
   *
   * @param title in the properties of the document
   * @param write adds the pages
   * @returns bytes of the file
   * @throws {Error} EEXIST if there is one
   */
  static async create(
    path: string,
    title: string,
    write: (pdf: PdfWriter) => Promise<void>,
  ): Promise<number> {
    await using file = await open(path, 'wx', 0o600);
    const pdf = new PdfWriter(file);
    await pdf.#start();
    await write(pdf);
    await pdf.#end(title);
    return pdf.#length;
  }

  /** Adds a picture, to be shown on a page or to be a soft mask. */
  async addPicture(picture: PdfPicture, mask?: Reference): Promise<Reference> {
    const { width, height, bits, filter, parameters, inverted, bytes } = picture;
    const space = await this.#colourSpace(picture);
    const components = typeof picture.colours === 'string' ? COLOURS[picture.colours].components : 1;
    const entries = [
      `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /BitsPerComponent ${bits}`,
      `/ColorSpace ${space} /Filter /${filter}`,
      parameters && `/DecodeParms << ${parameters} >>`,
      inverted && `/Decode [${Array(components).fill('1 0').join(' ')}]`,
      mask && `/SMask ${mask}`,
    ];
    return this.#addStream(entries.filter(Boolean).join(' '), bytes);
  }

  /** Adds a page with a picture that was added before. */
  async addPage({ page, picture, orientation }: PdfPage, shown: Reference): Promise<void> {
    const bottom = page.height - picture.y - picture.height;
    const { width, height } = picture;
    const origin = turnCorner(0, 0, orientation);
    const sides = [turnCorner(1, 0, orientation), turnCorner(0, 1, orientation)];
    const matrix = [
      ...sides.flatMap(({ x, y }) => [(x - origin.x) * width, (y - origin.y) * height]),
      picture.x + origin.x * width,
      bottom + origin.y * height,
    ];
    const content = Buffer.from(`q ${matrix.map(formatNumber).join(' ')} cm /P Do Q`);
    const contents = await this.#addStream('', [content]);
    const box = [page.width, page.height].map(formatNumber).join(' ');
    this.#pages.push(
      await this.#addObject(
        `<< /Type /Page /Parent ${PAGES} /MediaBox [0 0 ${box}] /Contents ${contents} /Resources << /XObject << /P ${shown} >> >> >>`,
      ),
    );
  }

  async #colourSpace({ colours, profile }: PdfPicture): Promise<string> {
    if (typeof colours !== 'string') {
      const { palette } = colours;
      return `[/Indexed /DeviceRGB ${palette.length / 3 - 1} <${palette.toString('hex')}>]`;
    }
    const { components, name } = COLOURS[colours];
    return profile
      ? `[/ICCBased ${await this.#addStream(`/N ${components} /Alternate ${name}`, [profile])}]`
      : name;
  }

  /** Writes the header. The objects 1 and 2 follow at the end. */
  async #start(): Promise<void> {
    this.#offsets.push(0, 0);
    // Bytes above 127 tell programs that transfer the file that it is binary (7.5.2).
    await this.#write(Buffer.from('%PDF-1.5\n%\xe2\xe3\xcf\xd3\n', 'latin1'));
  }

  async #end(title: string): Promise<void> {
    await this.#writeObject(1, `<< /Type /Catalog /Pages ${PAGES} >>`);
    await this.#writeObject(
      2,
      `<< /Type /Pages /Count ${this.#pages.length} /Kids [${this.#pages.join(' ')}] >>`,
    );
    const info = await this.#addObject(
      `<< /Title <${Buffer.from(`\uFEFF${title}`, 'utf16le').swap16().toString('hex').toUpperCase()}> >>`,
    );
    const start = this.#length;
    const rows = this.#offsets.slice(1).map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`);
    const size = this.#offsets.length;
    await this.#write(Buffer.from(`xref\n0 ${size}\n0000000000 65535 f \n${rows.join('')}`));
    const trailer = `trailer\n<< /Size ${size} /Root 1 0 R /Info ${info} >>\nstartxref\n${start}\n%%EOF\n`;
    await this.#write(Buffer.from(trailer));
  }

  async #addObject(content: string): Promise<Reference> {
    const number = this.#offsets.push(0) - 1;
    await this.#writeObject(number, content);
    return `${number} 0 R`;
  }

  async #writeObject(number: number, content: string): Promise<void> {
    this.#offsets[number] = this.#length;
    await this.#write(Buffer.from(`${number} 0 obj\n${content}\nendobj\n`));
  }

  /** Adds a stream. Its length is an object after it, because it is not known before. */
  async #addStream(entries: string, bytes: PdfPicture['bytes']): Promise<Reference> {
    const number = this.#offsets.push(this.#length) - 1;
    await this.#write(Buffer.from(`${number} 0 obj\n<< ${entries} /Length ${number + 1} 0 R >>\nstream\n`));
    const start = this.#length;
    for await (const block of bytes) await this.#write(block);
    const length = this.#length - start;
    await this.#write(Buffer.from('\nendstream\nendobj\n'));
    await this.#addObject(String(length));
    return `${number} 0 R`;
  }

  async #write(bytes: Buffer): Promise<void> {
    await writeAt(this.#file, this.#length, bytes);
    this.#length += bytes.length;
  }
}

/** The object with the list of pages. */
const PAGES: Reference = '2 0 R';

/** Formats a number with at most four decimals, without an exponent, which PDF lacks. */
const formatNumber = (value: number): string => String(Number(value.toFixed(4)) + 0);
