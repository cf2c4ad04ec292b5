import { serviceError } from '../errors.ts';
import { INPUTS, type InputType } from '../formats.ts';
import { DETECTION_BYTES, detectType } from './sniff.ts';

/** Looks at a file's first bytes as they arrive, and refuses a type that cannot be converted. */
export interface TypeDetector<T> {
  /** @throws ServiceError UNSUPPORTED_TYPE as soon as the bytes tell */
  push(chunk: Buffer): Promise<void>;
  /** The type, once it is told. */
  readonly type: T | undefined;
  /** The type of a file that has ended. */
  end(): Promise<T>;
}

export function createTypeDetector<T extends InputType | 'zip' | 'archive'>(
  label: string,
  accepts: readonly T[],
): TypeDetector<T> {
  let head: Buffer = Buffer.alloc(0);
  let enough = DETECTION_BYTES;
  let type: T | undefined;

  const judge = async (complete: boolean): Promise<void> => {
    const verdict = await detectType(head, complete);
    if (verdict === 'unsure') return;
    type = accepts.find((accepted) => accepted === verdict);
    if (type === undefined) throw serviceError('UNSUPPORTED_TYPE', label, labelsOf(accepts));
  };
  return {
    get type() {
      return type;
    },
    async push(chunk) {
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
