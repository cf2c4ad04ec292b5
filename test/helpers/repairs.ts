/** @module Limits of repairs, for tests of single repairs. */
import { createRepairContext } from '../../src/conversion/input/prepare.ts';
import type { ConversionInput, RepairContext } from '../../src/conversion/types.ts';

const MAX_BYTES = 10 * 1024 ** 2;

/** Creates limits without a disk. */
export function repairContext(onGrow: (bytes: number) => void = () => {}): RepairContext {
  const input: ConversionInput = { folder: '', type: 'png', label: 'The file' };
  return createRepairContext(input, MAX_BYTES, onGrow);
}
