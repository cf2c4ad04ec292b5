/**
 * @module Converts every image of a folder to all output formats and compares each result with what
 * independent decoders (sharp and Pillow) show: `npm run fidelity -- FOLDER`. If there is
 * `NAME.EXT.png` beside `NAME.EXT`, the result is compared with that. Prints the differences, worst
 * first, the files about which the decoders disagree, and a summary. Exits with 1 if there are
 * differences.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { typeOf } from '../test/helpers/engine.ts';
import { startEngine } from './engine.ts';
import { convertFile } from './fidelity/convert-file.ts';
import { judge, type Verdict } from './fidelity/judge.ts';
import { disagreement, REFERENCE_EXTENSION, referencesFor } from './fidelity/reference.ts';
import { report } from './fidelity/report.ts';

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: npm run fidelity -- FOLDER');
  process.exit(2);
}
await using engine = await startEngine('warn');
const verdicts: Verdict[] = [];
const disagreements: string[] = [];
const names = (await readdir(folder)).sort();
for (const name of names) {
  if (name.endsWith(REFERENCE_EXTENSION) && names.includes(name.slice(0, -REFERENCE_EXTENSION.length)))
    continue;
  const bytes = await readFile(join(resolve(folder), name));
  const type = await typeOf(bytes);
  if (!type) continue;
  const source = { name, bytes, type };
  const attempts = await convertFile(engine, source);
  const references = await referencesFor(source, join(resolve(folder), name));
  const doubt = disagreement(references);
  if (doubt) disagreements.push(`${name}: ${doubt}`);
  verdicts.push(...(await Promise.all(attempts.map((attempt) => judge(source, references, attempt)))));
  process.stderr.write('.');
}
process.stderr.write('\n');
const { text, differences } = report(verdicts, engine.toolchain.magick?.version ?? 'none');
if (disagreements.length > 0) console.log(`The decoders disagree:\n${disagreements.join('\n')}\n`);
console.log(text);
process.exitCode = differences > 0 ? 1 : 0;
