/**
 * @module Converts every image of a folder to all output formats and compares each result with what independent
 * decoders (sharp and Pillow) show: `npm run fidelity -- FOLDER`. Prints the differences, worst first, and a summary.
 * Exits with 1 if there are differences.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pino } from 'pino';
import { loadConfig } from '../src/config.ts';
import { createConversionEngine } from '../src/conversion/engine.ts';
import { DETECTION_BYTES, detectType } from '../src/conversion/input/detect.ts';
import { ALL_INPUT_TYPES, type InputType } from '../src/formats.ts';
import { convertFile } from './fidelity/convert-file.ts';
import { judge, type Verdict } from './fidelity/judge.ts';
import { referenceFrom } from './fidelity/reference.ts';
import { report } from './fidelity/report.ts';

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: npm run fidelity -- FOLDER');
  process.exit(2);
}
const log = pino({ level: 'warn' });
const config = loadConfig(process.env);
const engine = await createConversionEngine(config, log);
try {
  const verdicts: Verdict[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const bytes = await readFile(join(resolve(folder), name));
    const type = await detectType(
      bytes.subarray(0, DETECTION_BYTES * 16),
      bytes.length <= DETECTION_BYTES * 16,
    );
    if (!ALL_INPUT_TYPES.includes(type as InputType)) continue;
    const source = { name, bytes, type: type as InputType };
    const attempts = await convertFile(engine, source);
    const references = await referenceFrom(source);
    verdicts.push(...(await Promise.all(attempts.map((attempt) => judge(source, references, attempt)))));
    process.stderr.write('.');
  }
  process.stderr.write('\n');
  const { text, differences } = report(verdicts, engine.toolchain.magick?.version ?? 'none');
  console.log(text);
  process.exitCode = differences > 0 ? 1 : 0;
} finally {
  await engine.close();
}
