/** The first `units` UTF-16 code units of a text. A surrogate pair is never split: its first half is dropped, too. */
export function truncate(text: string, units: number): string {
  const cut = text.slice(0, units);
  const splitsPair =
    text.length > units && /[\ud800-\udbff]$/.test(cut) && /^[\udc00-\udfff]/.test(text[units] ?? '');
  return splitsPair ? cut.slice(0, -1) : cut;
}

/** A client's own words, short and harmless enough to be said back in a message. */
export function sanitizeForDisplay(text: string, most = 40): string {
  const clean = text.toWellFormed().replace(/\p{C}/gu, '\uFFFD');
  return clean.length > most ? `${truncate(clean, most)}…` : clean;
}
