/** @module Names that count as the same result. */
import { join } from 'node:path';
import { baseNameOf } from '../../text.ts';

/**
 * Returns a key that is equal for two inputs if their results have the same name, also on a file system that ignores
 * case. It is the same on every machine.
 *
 * @param relativeDir folders between the argument and the file
 */
export function resultKey(relativeDir: string, fileName: string): string {
  return join(relativeDir, baseNameOf(fileName)).toLowerCase().normalize('NFC');
}
