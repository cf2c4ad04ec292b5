import { MAX_NAME_UNITS } from '../convert/output-name.ts';
import { truncate } from '../printable.ts';

/** An ASCII stand-in for clients that cannot read `filename*`. A name is cut before it is normalized. */
export function asciiFallback(name: string): string {
  const plain = truncate(name, MAX_NAME_UNITS).normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.replace(/[^\x20-\x7e]+/g, '_').replace(/["\\%]/g, '_');
}
