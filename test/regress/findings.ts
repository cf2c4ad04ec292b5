import { open } from '../../scripts/fixtures/scene.ts';
import { compare } from '../../src/regress/compare.ts';
import type { Raster } from '../../src/regress/image/image.ts';
import { toMatrix } from '../../src/regress/matrix.ts';
import type { Recording, Row } from '../../src/regress/record.ts';
import { original, shifted } from './images.ts';

/** Two recordings that need no tools, with malicious file names. */

export const HOSTILE = [
  `"><img src=x onerror=alert(1)>.png`,
  `</script><script>alert(2)</script>'&amp;.png`,
  'line\nbreak \u0007 \u{1F600} \uD800.png',
];

const MATRIX = toMatrix({ cases: [{ name: 'png', format: 'png' }] });

const row = (image: string, more: Partial<Row> = {}): Row => ({
  image,
  case: 'png',
  format: 'png',
  input: '0',
  commands: [`magick PNG:in '<b>bold</b>' PNG:image.png`],
  ...more,
});

const result = (digest: string, ms = 10) => ({ result: { bytes: 1000, digest, ms, notes: [] } });

let created: ReturnType<typeof createFindings> | undefined;

/** Creates both recordings and their findings, once for all tests. */
export function hostileFindings(): ReturnType<typeof createFindings> {
  created ??= createFindings();
  return created;
}

async function createFindings() {
  const png = (raster: Raster): Promise<Buffer> => open(raster).png().toBuffer();
  const files: Record<string, Buffer> = { a: await png(original()), b: await png(shifted(original(), 4)) };
  const recording = (rows: readonly Row[], version: string): Recording => ({
    tools: { ImageMagick: version },
    matrix: MATRIX,
    rows,
    open: ({ result: kept }) => (kept?.digest ? Promise.resolve(files[kept.digest] as Buffer) : undefined),
  });
  const failed = { refused: { status: 400, message: '<i>damaged</i>' } };
  const names = [...HOSTILE, 'fails.gif', 'same.png'];
  const before = recording(
    names.map((name) => row(name, result('a'))),
    '6',
  );
  const changed = HOSTILE.map((name) => row(name, result('b')));
  const after = recording(
    [...changed, row('fails.gif', failed), row('same.png', result('a', 5000))],
    '7 <script>alert(3)</script>',
  );
  return { before, after, findings: await compare(before, after, MATRIX) };
}
