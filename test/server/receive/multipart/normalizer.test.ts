// @unit
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { openParser } from '../../../../src/server/receive/multipart/normalizer.ts';

const BOUNDARY = 'xyz';
/** Makes failures reproducible. */
const SEED = 20_261_121;
const DELIMITER = `\r\n--${BOUNDARY}`;

/** Opens the parser and the normalizer for a body. */
function open(boundary: string): ReturnType<typeof openParser> {
  const headersDistinct = { 'content-type': [`multipart/form-data; boundary="${boundary}"`] };
  return openParser({ headersDistinct } as unknown as IncomingMessage, {
    fileField: 'file',
    acceptsImage: false,
  });
}

/** Returns the normalized body, or the error for an invalid body. */
async function normalize(pieces: readonly Buffer[], boundary = BOUNDARY): Promise<Buffer | Error> {
  const output: Buffer[] = [];
  const stream = Readable.from(pieces, { objectMode: false }).pipe(open(boundary).normalizer);
  stream.on('data', (chunk: Buffer) => output.push(chunk));
  return finished(stream).then(
    () => Buffer.concat(output),
    (error) => error,
  );
}

interface Part {
  readonly name: string | undefined;
  /** Undefined for a text field. */
  readonly filename?: string | undefined;
  readonly content: string;
}

/** Returns the parts that busboy parses from the normalized body, or 'malformed'. */
async function partsOf(body: string | Buffer, boundary = BOUNDARY): Promise<Part[] | 'malformed'> {
  const normalized = await normalize([Buffer.from(body as string, 'latin1')], boundary);
  if (normalized instanceof Error) {
    expect(normalized.name).to.equal('MalformedMultipartError');
    return 'malformed';
  }
  const parts: Part[] = [];
  const { parser } = open(boundary);
  parser.on('field', (name: string | undefined, content) => parts.push({ name, content }));
  parser.on('file', (name: string | undefined, stream, { filename = '' }) => {
    const part = { name, filename, content: '' };
    parts.push(part);
    stream.on('data', (chunk: Buffer) => {
      part.content += chunk.toString('latin1');
    });
    stream.on('error', () => {});
  });
  return finished(parser.end(normalized)).then(
    () => parts,
    () => 'malformed' as const,
  );
}

const part = (header: string, content = 'data'): string => `--xyz\r\n${header}\r\n\r\n${content}\r\n`;
const formData = (parameters: string, more = ''): string =>
  part(`Content-Disposition: form-data; ${parameters}${more}`);
const END = '--xyz--\r\n';
const FILE = { name: 'file', content: 'data' };
/** The only part of a form, with these parameters and more headers. */
const form = (parameters: string, more?: string): string => formData(parameters, more) + END;
const named = (filename: string) => ({ ...FILE, filename });

describe('the multipart normalizer', () => {
  describe('accepts a body', () => {
    const type = (value: string): string => `\r\nContent-Type: ${value}`;
    const text = (content: string, more = ''): string =>
      part(`Content-Disposition: form-data; name=a${more}`, content) + END;
    for (const [what, body, expected] of [
      ['with blanks behind a boundary', `--xyz \t \r\n${formData('name="file"').slice(7)}${END}`, FILE],
      ['with blanks behind the last boundary', `${formData('name="file"')}--xyz-- \t\r\n`, FILE],
      ['without a line break behind the last boundary', `${formData('name="file"')}--xyz--`, FILE],
      ['with a preamble and an epilogue', `hello\r\n\r\n${formData('name="file"')}${END}--xyz\r\nbye`, FILE],
      ['with a folded header', form('\r\n name="file"'), FILE],
      ['with a header in capitals', part('CONTENT-DISPOSITION:FORM-DATA;NAME=file') + END, FILE],
      ['with unknown headers, also repeated', form('name="file"', '\r\nX-A: 1\r\nX-A: 2'), FILE],
      ['with empty parameters', form(';name="file";; filename="a.jpg";'), named('a.jpg')],
      ['with a field name that ends in a backslash', form('name="fi\\"'), { ...FILE, name: 'fi\\' }],
      ['with an image type and no file name', form('name="file"', type('image/png')), named('')],
      ['with an archive type and no file name', form('name="file"', type('application/zip')), named('')],
      ['with JSON in a field', form('name="file"', type('application/json')), FILE],
      ['with a charset', text('\xe9', type('text/plain; charset=iso-8859-1;')), { name: 'a', content: 'é' }],
      [
        'with no line break between a header and the next boundary',
        `--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n--xyz--\r\n`,
        { name: 'a', content: '' },
      ],
      ...['x--xyz--\r\n--xy\n--xyz', '\r\n\r\n\r'].map(
        (content) =>
          [`with the data ${JSON.stringify(content)}`, text(content), { name: 'a', content }] as const,
      ),
      [
        'with an empty file and a file name',
        text('', '; filename=b'),
        { name: 'a', filename: 'b', content: '' },
      ],
      [
        'with an empty file input, which becomes an empty field',
        text('', `; filename=""${type('application/octet-stream')}`),
        { name: 'a', content: '' },
      ],
    ] as const) {
      it(what, async () => {
        expect(await partsOf(body)).to.deep.equal([expected]);
      });
    }

    for (const [how, parameters, filename] of [
      ['without quotation marks', 'filename=a.jpg', 'a.jpg'],
      ['with blanks, without quotation marks', 'filename=my photo.jpg ', 'my photo.jpg'],
      ['with a semicolon', 'filename="a;b.jpg"', 'a;b.jpg'],
      ['in front of a parameter without a value', 'filename="a.jpg"; x', 'a.jpg'],
      ['with escaped quotation marks', 'filename="a\\"b\\\\c.jpg"', 'c.jpg'],
      ...['5" disk.jpg', '"a" and "b".jpg', 'a"b;c.jpg', 'a.jpg"'].map(
        (name) => [`with quotation marks that are not escaped: ${name}`, `filename="${name}"`, name] as const,
      ),
      ['with a Windows path', 'filename="C:\\dir\\a.jpg"', 'a.jpg'],
      ['that ends in a backslash, as browsers write it', 'filename="a\\"', ''],
      ['in UTF-8', 'filename="\xc3\xa9\xe6\x97\xa5.jpg"', 'é日.jpg'],
      ['in the extended form', `filename="e.jpg"; filename*=UTF-8''%c3%a9.jpg`, 'é.jpg'],
      ['in the extended form, in Latin-1', `filename="e.jpg"; filename*=iso-8859-1'en'%e9.jpg`, 'é.jpg'],
      ['also in an unknown charset', `filename*=foo''x; filename="a.jpg"`, 'a.jpg'],
      ['also in an incomplete extended form', `filename*=UTF-8''%; filename="a.jpg"`, 'a.jpg'],
      ['also in an extended form that is not UTF-8', `filename*=UTF-8''%ff; filename="a.jpg"`, 'a.jpg'],
      ['only in an unknown charset', `filename*=foo''x`, ''],
      ['that is empty, and bytes', 'filename=""', ''],
      ['of 15 kB, which is truncated to 1024 units', `filename="${'x'.repeat(15_000)}"`, 'x'.repeat(1024)],
    ] as const) {
      it(`with a file name ${how}`, async () => {
        expect(await partsOf(form(`name="file"; ${parameters}`))).to.deep.equal([named(filename)]);
      });
    }
  });

  describe('rejects a body', () => {
    const disposition = (value: string): string => `Content-Disposition: ${value}`;
    for (const [what, body] of [
      ['whose part has more than 100 parameters', form(`name="file"${';'.repeat(101)}`)],
      ['with other characters after a boundary', form('name=a', '\r\n\r\nx\r\n--xyzzy\r\n')],
      ['with a boundary in the header of a part', form('name=a', '\r\n--xyz\r\n')],
      ['with a part without a header', `--xyz\r\n\r\ndata\r\n${END}`],
      ['with a part without a Content-Disposition', part('Content-Type: image/png') + END],
      ['with a part that is not form-data', part(disposition('attachment; name=file')) + END],
      ['with two Content-Dispositions in a part', form('name=a', `\r\n${disposition('form-data; name=b')}`)],
      [
        'with two Content-Types in a part',
        form('name=a', '\r\nContent-Type: a/b\r\nContent-Type: image/png'),
      ],
      ['with two names in a part', form('name=a; name=b')],
      ['with two file names in a part', form('name=a; filename=b; filename="c"')],
      ['with an unclosed quotation mark', form('name="a')],
      ['with text after a quoted value', form('name="a"b')],
      ['with a quotation mark before a semicolon', form('name="file"; filename="a"; b.jpg"')],
      ['with a name in a file name', form('name="file"; filename="a"; name="b"c.jpg"')],
      ['with a bare line feed in a header', form('name=a\n')],
      ['with a bare carriage return in a header', form('name=a\rX: y')],
      ['with NUL in a header', form('name="a\0"')],
      ['with a blank before a colon', part('Content-Disposition : form-data; name=a') + END],
      ['with a header that starts with a folded line', part(` ${disposition('form-data; name=a')}`) + END],
      ['with a header of more than 16 KiB', form(`name=a; x=${'y'.repeat(17_000)}`)],
      ['with a header that never ends', `--xyz\r\nX: ${'y'.repeat(100_000)}`],
      ['without a last boundary', formData('name=a')],
      ['that ends in a header', '--xyz\r\nContent-Disposition'],
      ['that is empty', ''],
    ] as const) {
      it(what, async () => {
        expect(await partsOf(body)).to.equal('malformed');
      });
    }
  });

  /** Pieces of delimiters and headers, so that generated bodies contain many of them. */
  const pieces = fc.oneof(
    fc.constantFrom('\r', '\n', '\r\n', '\r\n--', DELIMITER, `${DELIMITER}\r\n`, `${DELIMITER}--`),
    fc.constantFrom('-', '--', ' ', '"', '\\', ';', '; name="file"', '; filename="a"'),
    fc.constantFrom('Content-Disposition: form-data', 'Content-Type: image/png', '\r\n\r\n'),
    fc.string({ maxLength: 5 }),
  );
  const bodies = fc.array(pieces, { maxLength: 40 }).map((list) => `--xyz\r\n${list.join('')}`);

  it('accepts 60 kB before the first and after the last boundary, and rejects more', async () => {
    const outer = (bytes: number): string => 'x'.repeat(bytes);
    const body = `\r\n${form('name="file"')}`;
    expect(await partsOf(outer(30_000) + body + outer(30_000))).to.deep.equal([FILE]);
    expect(await partsOf(outer(70_000) + body)).to.equal('malformed');
    expect(await partsOf(body + outer(70_000))).to.equal('malformed');
  });

  it('returns the same output for every division into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        bodies,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (body, sizes) => {
          const bytes = Buffer.from(body, 'latin1');
          const cut: Buffer[] = [];
          for (let at = 0, count = 0; at < bytes.length; count += 1) {
            const size = sizes[count % sizes.length] as number;
            cut.push(bytes.subarray(at, at + size));
            at += size;
          }
          expect(String(await normalize(cut))).to.equal(String(await normalize([bytes])));
        },
      ),
      { numRuns: 2000, seed: SEED },
    );
  });

  it('does not change a normalized body', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const once = await normalize([Buffer.from(`${body}${DELIMITER}--`, 'latin1')]);
        // An incomplete body is not written completely.
        if (once instanceof Error || !String(once).endsWith(`${DELIMITER}--\r\n`)) return;
        expect(String(await normalize([once]))).to.equal(String(once));
      }),
      { numRuns: 2000, seed: SEED },
    );
  });

  it('keeps all parts of a body that FormData has encoded', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    const entry = fc.record({
      name: text,
      filename: fc.option(text, { nil: undefined }),
      content: fc.uint8Array({ minLength: 1, maxLength: 200 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 5 }), async (entries) => {
        const form = new FormData();
        for (const { name, filename, content } of entries) {
          if (filename === undefined) form.append(name, Buffer.from(content).toString('hex'));
          else form.append(name, new Blob([content as Uint8Array<ArrayBuffer>]), filename);
        }
        const request = new Request('http://localhost', { method: 'POST', body: form });
        const boundary = /boundary=(.*)/.exec(request.headers.get('content-type') ?? '')?.[1] as string;
        const parts = await partsOf(Buffer.from(await request.arrayBuffer()).toString('latin1'), boundary);
        // Names are not compared: browsers escape quotation marks and line breaks in them.
        expect((parts as Part[]).map(({ content }) => content)).to.deep.equal(
          entries.map(({ filename, content }) =>
            Buffer.from(content).toString(filename === undefined ? 'hex' : 'latin1'),
          ),
        );
        expect((parts as Part[]).map(({ filename }) => filename === undefined)).to.deep.equal(
          entries.map(({ filename }) => filename === undefined),
        );
      }),
      { numRuns: 500, seed: SEED },
    );
  });
});
