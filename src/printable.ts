/** A client's own words, short and harmless enough to be said back in a message. */
export function printable(text: string, most = 40): string {
  const clean = text.toWellFormed().replace(/\p{C}/gu, '\uFFFD');
  return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}
