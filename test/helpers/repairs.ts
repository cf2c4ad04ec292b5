import type { ConversionInput } from '../../src/conversion/context.ts';
import { createRepairContext } from '../../src/conversion/input/inspect.ts';
import type { RepairContext } from '../../src/images/containers/file.ts';

const MAX_BYTES = 10 * 1024 ** 2;

/** Creates limits without a disk. */
export function repairContext(onGrow: (bytes: number) => void = () => {}): RepairContext {
  const input: ConversionInput = { folder: '', type: 'png', label: 'The file' };
  return createRepairContext(input, MAX_BYTES, onGrow);
}
