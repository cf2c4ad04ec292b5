/**
 * @module Converts damaged copies of every image of a folder: `npm run fuzz -- FOLDER [--count 2000] [--seed 1] [--save DIR]`.
 * `--count` is the number of copies per type. Each copy must be converted, or rejected with 400, 413 or 415. Where sharp and
 * Pillow still show the picture of the undamaged file, so must the result. Prints the findings, and saves the files of them.
 * Exits with 1 if there are findings.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { loadConfig } from '../src/config.ts';
import { type ConversionEngine, createConversionEngine } from '../src/conversion/engine.ts';
import { DETECTION_BYTES, detectType } from '../src/conversion/input/detect.ts';
import { type ConvertOptions, INPUT_FILE } from '../src/conversion/plan/types.ts';
import { ServiceError } from '../src/errors.ts';
import { INPUT_TYPES, type InputType } from '../src/formats.ts';
import { decode, difference, type Pixels } from '../test/helpers/pixels.ts';
import { referencesFor } from './fidelity/reference.ts';
import { mutate } from './fuzz/mutate.ts';
import { seeded } from './stress/random.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    save: { type: 'string', default: 'fuzz-findings' },
  },
});
const [folder] = positionals;
if (!folder) {
  console.error('usage: npm run fuzz -- FOLDER [--count 2000] [--seed 1] [--save DIR]');
  process.exit(2);
}

const ALLOWED_STATUSES = [400, 413, 415];
/** Maximum mean absolute error (0 to 255) between pictures that count as the same. */
const MAX_ERROR = 1;
const OPTIONS: ConvertOptions = { format: 'png', quality: 80, stripMetadata: true };

interface Source {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
  /** The picture as sharp and Pillow both show it; undefined if they disagree. */
  readonly picture: Pixels | undefined;
}

const head = (bytes: Buffer): Buffer => bytes.subarray(0, DETECTION_BYTES * 16);
const typeOf = (bytes: Buffer) => detectType(head(bytes), bytes.length <= DETECTION_BYTES * 16);

const isSame = (one: Pixels, other: Pixels): boolean =>
  one.width === other.width && one.height === other.height && difference(one, other).mae <= MAX_ERROR;

/** Returns the picture that both decoders show. */
async function agreedPicture(name: string, bytes: Buffer, type: InputType): Promise<Pixels | undefined> {
  const [one, other] = await referencesFor({ name, bytes, type }, '/nonexistent');
  return one && other && isSame(one.still, other.still) ? one.still : undefined;
}

async function loadSources(path: string): Promise<Source[]> {
  const sources: Source[] = [];
  for (const name of readdirSync(path).sort()) {
    const bytes = readFileSync(join(path, name));
    const type = INPUT_TYPES.find((known) => name.endsWith(`.${known}`));
    if (type && (await typeOf(bytes)) === type)
      sources.push({ name, bytes, type, picture: await agreedPicture(name, bytes, type) });
  }
  return sources;
}

/** Converts a damaged copy. Returns what is wrong with the outcome, or undefined. */
async function check(engine: ConversionEngine, source: Source, bytes: Buffer): Promise<string | undefined> {
  const type = await typeOf(bytes);
  if (!INPUT_TYPES.some((known) => known === type)) return undefined; // 415
  const workspace = await engine.workspaces.open();
  try {
    const input = await workspace.folder('fuzz');
    writeFileSync(join(input, INPUT_FILE), bytes);
    const file = { folder: input, type: type as InputType, label: source.name, client: 'fuzz' };
    const result = await engine.convert(file, OPTIONS, new AbortController().signal);
    if (!source.picture || result.notes.includes('truncated-input')) return undefined;
    const shown = await agreedPicture(source.name, bytes, source.type);
    if (!shown || !isSame(shown, source.picture)) return undefined;
    return isSame(await decode(readFileSync(result.path)), shown)
      ? undefined
      : 'another picture than sharp and Pillow show';
  } catch (error) {
    if (!(error instanceof ServiceError)) return `internal error: ${(error as Error).message}`;
    return ALLOWED_STATUSES.includes(error.status) ? undefined : `status ${error.status}: ${error.message}`;
  } finally {
    await workspace.remove();
  }
}

const engine = await createConversionEngine(loadConfig(process.env), pino({ level: 'fatal' }));
const pick = seeded(Number(values.seed)).below;
let findings = 0;
try {
  const sources = await loadSources(folder);
  for (const type of INPUT_TYPES) {
    const some = sources.filter((source) => source.type === type);
    for (let at = 0; some.length > 0 && at < Number(values.count); at += 1) {
      const source = some[at % some.length] as Source;
      const bytes = mutate(source.bytes, pick);
      const finding = await check(engine, source, bytes);
      if (!finding) continue;
      findings += 1;
      mkdirSync(values.save, { recursive: true });
      writeFileSync(join(values.save, `${at}-${source.name}`), bytes);
      console.log(`${at}-${source.name}: ${finding}`);
    }
    if (some.length > 0) console.log(`${type}: ${values.count} copies of ${some.length} files`);
  }
} finally {
  await engine.close();
}
process.exitCode = findings > 0 ? 1 : 0;
