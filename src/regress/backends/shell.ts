/** Words as a shell takes them. */

const PLAIN = /^[\w@%+=:,./-]+$/;

export function shellWords(words: readonly string[]): string {
  return words.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}
