import { readdirSync, readFileSync } from 'node:fs';
import { INPUT_TYPES, type InputType, OUTPUT_TYPES, type OutputType } from '../../src/formats.ts';
import { decode, difference, onGrey } from '../../test/helpers/pixels.ts';
import { makeZip } from '../../test/helpers/zip.ts';
import { scene, square } from '../fixtures/scene.ts';
import { HOSTILE } from './hostile.ts';
import type { Random } from './random.ts';

/** What the crowd sends, and which answers are right. */

export interface Request {
  readonly kind: 'good' | 'batch' | 'bad' | 'hostile' | 'mutant';
  readonly what: string;
  readonly path: string;
  readonly form: () => FormData;
  /** The statuses that are right; 503 besides is right wherever a fault is about. */
  readonly expected: readonly number[];
  /** Of a good one: what the result must be, byte for byte. */
  readonly result?: Buffer;
}

const FOLDER = new URL('../../fixtures/images/', import.meta.url).pathname;
const fixture = (name: string): Buffer => readFileSync(FOLDER + name);

const formOf = (
  field: string,
  files: readonly Uint8Array[],
  fields: Readonly<Record<string, string>>,
): FormData => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const [at, file] of files.entries()) form.append(field, new Blob([new Uint8Array(file)]), `${at}.bin`);
  return form;
};

/** In dB, for a lossy picture of the scene; turned, mirrored or miscoloured it is below 20. */
const MIN_PSNR = 25;

/**
 * Every pair of formats, converted once by a server that nothing troubles. Each result is compared with the
 * picture it was made from before it counts as right.
 */
export async function goodRequests(base: string): Promise<Request[]> {
  const requests: Request[] = [];
  for (const input of INPUT_TYPES) {
    for (const format of OUTPUT_TYPES) {
      const file = fixture(`scene.${input}`);
      const form = () => formOf('file', [file], { format });
      const answer = await fetch(`${base}/convert`, { method: 'POST', body: form() });
      const result = Buffer.from(await answer.arrayBuffer());
      if (answer.status !== 200) throw new Error(`${input} to ${format}: ${answer.status} ${result}`);
      await checkPicture(input, format, result);
      const what = `${input} to ${format}`;
      requests.push({
        kind: 'good',
        what,
        path: '/convert',
        form,
        expected: [200],
        result,
      });
    }
  }
  return requests;
}

async function checkPicture(input: InputType, format: OutputType, result: Buffer): Promise<void> {
  const source = input === 'ico' ? square(64) : scene({ flat: input === 'gif' || input === 'svg' });
  const { psnr } = difference(onGrey(await decode(result, format), 255), onGrey(source, 255));
  if (psnr < MIN_PSNR) throw new Error(`${input} to ${format} shows something else: ${psnr.toFixed(1)} dB`);
}

const ONE_FILE = { path: '/convert', field: 'file' } as const;

/** Mistakes that people make. */
const BAD: readonly {
  what: string;
  file: () => Uint8Array;
  fields?: Record<string, string>;
  expected: number;
}[] = [
  { what: 'a text', file: () => Buffer.from('hello'), expected: 415 },
  { what: 'nothing', file: () => Buffer.alloc(0), expected: 400 },
  { what: 'half a PNG', file: () => fixture('scene.png').subarray(0, 9000), expected: 400 },
  {
    what: '11 MiB',
    file: () => Buffer.concat([fixture('scene.jpg'), Buffer.alloc(11 * 1024 ** 2)]),
    expected: 413,
  },
  { what: 'a quality of 1000', file: () => fixture('scene.png'), fields: { quality: '1000' }, expected: 400 },
  {
    what: 'a format that is none',
    file: () => fixture('scene.png'),
    fields: { format: 'tga' },
    expected: 400,
  },
];

export function badRequests(): Request[] {
  return BAD.map(({ what, file, fields = {}, expected }) => ({
    ...{ kind: 'bad', what, path: ONE_FILE.path, expected: [expected] },
    form: () => formOf(ONE_FILE.field, [file()], fields),
  }));
}

/** @param patient whether those may be among them that take as long as they are let */
export function hostileRequests(patient: boolean): Request[] {
  return HOSTILE.filter(({ slow }) => patient || !slow).map(({ what, file, format = 'png', expected }) => {
    const bytes = file();
    return {
      kind: 'hostile',
      what,
      path: '/convert',
      form: () => formOf('file', [bytes], { format }),
      expected,
    };
  });
}

const MUTABLE = readdirSync(FOLDER).filter((name) =>
  /\.(png|jpg|gif|bmp|tiff|avif|ico|webp|svg)$/.test(name),
);

/** A fixture with some bytes changed: whatever becomes of it, the answer is one of those that a picture can get. */
export function mutant(random: Random): Request {
  const name = random.pick(MUTABLE);
  const bytes = fixture(name);
  for (let change = 0; change <= random.below(8); change += 1) {
    bytes[Math.floor(random.next() ** 2 * bytes.length)] = random.below(256);
  }
  const format = random.pick(OUTPUT_TYPES);
  const what = `a changed ${name} to ${format}`;
  return {
    kind: 'mutant',
    what,
    path: '/convert',
    form: () => formOf('file', [bytes], { format }),
    expected: [200, 400, 413, 415, 503],
  };
}

export function batch(random: Random): Request {
  const names = Array.from({ length: 1 + random.below(6) }, () => random.pick(MUTABLE));
  const files = names.map(fixture);
  const zipped = random.next() < 0.3;
  const zip = () =>
    makeZip(names.map((name, at) => ({ name: `${at}-${name}`, content: files[at] as Buffer })));
  const form = () =>
    formOf('files', zipped ? [zip()] : files, { format: random.pick(OUTPUT_TYPES), on_error: 'skip' });
  return { kind: 'batch', what: `a batch of ${names.length}`, path: '/batch', form, expected: [200] };
}
