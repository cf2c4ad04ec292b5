import { baseNameOf } from '../conversion/filename.ts';

/** Names of files in an archive, which every system can extract. */

const FALLBACK = 'image';

/**
 * What Windows allows in no name, and `:` behind a letter, which the library that writes the archive would take for a
 * drive: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
const FORBIDDEN = /[<>:"|?*\\/]/g;
/** Devices, also with an extension behind them. Digits may be written small, as ISO 8859-1 has them. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/i;

/** The base name for the result of a file that the client calls `clientName`, without its extension. */
export function archiveBaseName(clientName: string | undefined): string {
  const name = baseNameOf(clientName).replace(FORBIDDEN, '_');
  // Windows drops blanks and dots at the end of a name, and Explorer drops blanks before it.
  const trimmed = name.trimStart().replace(/[\s.]+$/u, '') || FALLBACK;
  return DEVICE.test(trimmed) ? `_${trimmed}` : trimmed;
}
