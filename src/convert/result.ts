import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type InputType, OUTPUTS, startsLike } from '../formats.ts';
import { badResult } from './failure.ts';
import { type ConvertOptions, OUTPUT_STEM } from './plan/types.ts';

/** Whether what the tools left is what was asked for. */

/** What it was made from. */
interface ResultOf {
  readonly folder: string;
  readonly type: InputType;
  readonly label: string;
}

interface Result {
  readonly path: string;
  readonly bytes: number;
}

/**
 * Success is one file, the expected one, that is not empty and starts as its format does. No link, which would lead
 * out of the folder. It was written a moment ago: to look at it waits for no disk.
 */
export function checkResult(source: ResultOf, options: ConvertOptions, output: string): Result {
  const outputs = readdirSync(source.folder).filter((name) => name.startsWith(OUTPUT_STEM));
  if (outputs.length !== 1 || outputs[0] !== output) {
    throw badResult(`expected ${output}, found ${outputs.length} files: ${outputs.slice(0, 3)}`, source);
  }
  const path = join(source.folder, output);
  // Neither a link nor a pipe, which would be waited for for ever.
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(file);
    const head = Buffer.alloc(16);
    const length = readSync(file, head, 0, head.length, 0);
    if (!startsLike(OUTPUTS[options.format], head.subarray(0, length))) {
      throw badResult(`${output} has ${size} bytes and does not start like ${options.format}`, source);
    }
    return { path, bytes: size };
  } finally {
    closeSync(file);
  }
}
