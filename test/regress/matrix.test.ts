import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { OUTPUT_TYPES } from '../../src/formats.ts';
import { defaultMatrix, MatrixError, readMatrix, toMatrix } from '../../src/regress/matrix.ts';
import { makeTempDir } from '../helpers/hooks.ts';

describe('the matrix of a regression check', () => {
  it('includes every output format by default', () => {
    const formats = toMatrix(defaultMatrix(OUTPUT_TYPES)).cases.map(({ options }) => options.format);
    expect(formats).to.include.members(['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf']);
  });

  it('accepts YAML and JSON with the option names of the API', async () => {
    const folder = await makeTempDir('matrix');
    const [yaml, json] = [join(folder, 'matrix.yaml'), join(folder, 'matrix.json')];
    await writeFile(yaml, 'cases:\n  - { name: small, format: JPEG, width: 300, strip_metadata: no }\n');
    await writeFile(json, '{"cases":[{"name":"small","format":"JPEG","width":300,"strip_metadata":false}]}');
    for (const path of [yaml, json]) {
      const [small] = (await readMatrix(path)).cases;
      expect(small?.options).to.include({ format: 'jpg', quality: 80, width: 300, stripMetadata: false });
    }
  });

  it('accepts fit, position, enlarge and max_bytes, and rejects incompatible options', () => {
    const square = { name: 'square', format: 'jpg', width: 300, height: 200, fit: 'cover' };
    const [asked] = toMatrix({
      cases: [{ ...square, position: 'north', enlarge: true, max_bytes: 9000 }],
    }).cases;
    expect(asked?.options).to.include({ fit: 'cover', position: 'top', enlarge: true, maxBytes: 9000 });
    expect(() => toMatrix({ cases: [{ ...square, format: 'png', max_bytes: 9000 }] })).to.throw(
      MatrixError,
      'case square: Invalid max_bytes "9000": expected a format with a quality to lower (webp, jpg, avif, jxl), which png does not have.',
    );
    const { height: _, ...oneSide } = square;
    expect(() => toMatrix({ cases: [oneSide] })).to.throw(
      MatrixError,
      'case square: Invalid fit "cover": expected width and height, of which height is missing.',
    );
  });

  it('applies the most specific thresholds: for images of a case, for a case, for all', () => {
    const matrix = toMatrix({
      thresholds: { psnr: 50, ssim: 0.9 },
      cases: [
        { name: 'webp', format: 'webp', thresholds: { psnr: 30 } },
        { name: 'png', format: 'png' },
      ],
      overrides: [
        { images: 'noise-*.jpg', cases: ['webp'], thresholds: { psnr: 25 } },
        { images: 'raw/*', cases: ['png'], skip: true },
      ],
    });
    expect(matrix.thresholds('a.jpg', 'png')).to.include({ psnr: 50, ssim: 0.9, area: 3 });
    expect(matrix.thresholds('a.jpg', 'webp')).to.include({ psnr: 30, ssim: 0.9, patch: 10 });
    expect(matrix.thresholds('deep/noise-1.jpg', 'webp')).to.include({ psnr: 25 });
    expect(matrix.thresholds('noise-1.jpg', 'png')).to.include({ psnr: 50 });
    expect(matrix.thresholds('raw/a.jpg', 'png')).to.equal(undefined);
    expect(matrix.thresholds('raw/a.jpg', 'webp')).to.include({ psnr: 30 });
  });

  it('judges lossless WebP and JPEG XL of quality 100 as other results without loss', () => {
    const cases = [
      { name: 'webp', format: 'webp', lossless: true },
      { name: 'png', format: 'png' },
    ];
    const { thresholds } = toMatrix({ cases });
    expect(thresholds('a', 'webp')).to.deep.equal(thresholds('a', 'png'));
    const exact = toMatrix({ cases: [{ name: 'jxl', format: 'jxl', quality: 100 }] });
    expect(exact.thresholds('a', 'jxl')).to.include({ max: 2, area: 3 });
  });

  for (const [what, source, message] of [
    ['without cases', {}, /cases: .*array/],
    ['with no case', { cases: [] }, /cases: expected at least one case/],
    ['with a case without a name', { cases: [{ format: 'png' }] }, /cases\.0\.name/],
    ['with a name that leads elsewhere', { cases: [{ name: '../png' }] }, /expected letters, digits/],
    [
      'with two cases of one name',
      { cases: [{ name: 'a' }, { name: 'a', format: 'png' }] },
      /two cases are named a/,
    ],
    [
      'with an option that does not exist',
      { cases: [{ name: 'a', colour: 'red' }] },
      /there is no option "colour"/,
    ],
    [
      'with a value that the API would refuse',
      { cases: [{ name: 'a', quality: 200 }] },
      /case a: Invalid quality "200": expected a whole number from 1 to 100/,
    ],
    [
      'with a threshold that does not exist',
      { thresholds: { psrn: 3 }, cases: [{ name: 'a' }] },
      /thresholds.*psrn/,
    ],
    [
      'with a threshold out of range',
      { cases: [{ name: 'a', thresholds: { ssim: 2 } }] },
      /ssim: expected a number from -1 to 1/,
    ],
    [
      'with a colour that YAML takes for a comment',
      { cases: [{ name: 'a', format: 'jpg', background: null }] },
      /cases\.0\.background: .*put quotes/,
    ],
    [
      'with exceptions for a case that does not exist',
      { cases: [{ name: 'a' }], overrides: [{ images: '*', cases: ['b'], skip: true }] },
      /no case is named b/,
    ],
  ] as const) {
    it(`rejects an invalid matrix and names the field: ${what}`, () => {
      expect(() => toMatrix(source)).to.throw(MatrixError, message);
    });
  }

  it('rejects a missing file and invalid YAML, and names the file', async () => {
    const path = join(await makeTempDir('matrix'), 'broken.yaml');
    await writeFile(path, 'cases: [');
    for (const [file, message] of [
      [path, /broken\.yaml: /],
      [`${path}.gone`, /broken\.yaml\.gone cannot be read: no such file or directory$/],
    ] as const) {
      const error = await readMatrix(file).catch((caught: unknown) => caught);
      expect(error).to.be.instanceOf(MatrixError);
      expect((error as Error).message).to.match(message);
    }
  });
});
