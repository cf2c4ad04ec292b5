/** An ASCII stand-in for clients that cannot read `filename*`. */
export function asciiName(name: string): string {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.replace(/[^\x20-\x7e]+/g, '_').replace(/["\\%]/g, '_');
}
