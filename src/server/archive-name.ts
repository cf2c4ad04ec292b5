/** @module Derives file names for archives that every operating system can extract. */
import { baseNameOf, FALLBACK_NAME } from '../text.ts';

/**
 * Characters that Windows forbids in file names:
 * https://learn.microsoft.com/windows/win32/fileio/naming-a-file. The library that writes the archive would also take a
 * letter with a colon for a drive.
 */
const FORBIDDEN = /[<>:"|?*\\/]/g;
/** Device names of Windows, also with an extension. The digit may be one of the superscripts of ISO 8859-1. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/i;

/** Returns the base name, without an extension, for the result of a file that the client calls `clientName`. */
export function archiveBaseName(clientName: string | undefined): string {
  const name = baseNameOf(clientName).replace(FORBIDDEN, '_');
  // Windows drops spaces and dots at the end of a name, and Explorer drops spaces at its start.
  const trimmed = name.trimStart().replace(/[\s.]+$/u, '') || FALLBACK_NAME;
  return RESERVED_NAME.test(trimmed) ? `_${trimmed}` : trimmed;
}
