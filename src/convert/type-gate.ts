import { fail } from '../errors.ts';
import { INPUTS, type InputType } from '../formats.ts';
import { SNIFF_BYTES, sniff } from './sniff.ts';

/** Looks at a file's first bytes as they arrive, and refuses a type that cannot be converted. */
export interface TypeGate<T> {
  /** @throws ServiceError UNSUPPORTED_TYPE as soon as the bytes tell */
  look(chunk: Buffer): Promise<void>;
  /** The type, once it is told. */
  readonly type: T | undefined;
  /** The type of a file that has ended. */
  end(): Promise<T>;
}

export function createTypeGate<T extends InputType | 'zip' | 'archive'>(
  label: string,
  accepts: readonly T[],
): TypeGate<T> {
  let head: Buffer = Buffer.alloc(0);
  let enough = SNIFF_BYTES;
  let type: T | undefined;

  const judge = async (complete: boolean): Promise<void> => {
    const verdict = await sniff(head, complete);
    if (verdict === 'unsure') return;
    type = accepts.find((accepted) => accepted === verdict);
    if (type === undefined) throw fail('UNSUPPORTED_TYPE', label, labelsOf(accepts));
  };
  return {
    get type() {
      return type;
    },
    async look(chunk) {
      if (type !== undefined) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < enough) return;
      enough = head.length * 2; // so that many small pieces are not each a reason to look again
      await judge(false);
    },
    async end() {
      if (type === undefined) await judge(true);
      return type as T;
    },
  };
}

function labelsOf(types: readonly (InputType | 'zip' | 'archive')[]): string {
  return types.flatMap((type) => (type === 'zip' || type === 'archive' ? [] : INPUTS[type].label)).join(', ');
}
