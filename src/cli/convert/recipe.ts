/** @module Identifies the options and tools that a result depends on. A result with another recipe is out of date. */
import { createHash } from 'node:crypto';
import type { ConvertOptions } from '../../conversion/plan/types.ts';

/**
 * Returns a short hash of everything that determines a result besides its source.
 *
 * @param maker versions of the tools, see `converter.ts`
 * @param version version of this program
 */
export function hashRecipe(options: ConvertOptions, maker: string, version: string): string {
  const sorted = Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([sorted, maker, version]))
    .digest('hex')
    .slice(0, 16);
}
