/** @module Finds the root element of an XML file. */

/**
 * Matches one part of the preamble of an XML document. Inside a document type, every character has one way to match,
 * so that no input causes backtracking.
 */
const QUOTED = `"[^"]*"|'[^']*'`;
const COMMENT = '<!--(?:(?!-->)[^])*-->';
const SUBSET = `\\[(?:${COMMENT}|${QUOTED}|<(?!!--)|[^\\]"'<])*\\]`;
const DOCTYPE = `<!DOCTYPE(?:${QUOTED}|${SUBSET}|[^[\\]<>"'])*>`;
const PREAMBLE = new RegExp(`^(?:\\s+|<\\?[^]*?\\?>|${COMMENT}|${DOCTYPE})`);

/** Decodes the text of an XML file from its root element, or from the first part that is not a preamble. */
export function skipXmlPreamble(head: Uint8Array): string {
  let text = decode(head);
  for (let match = PREAMBLE.exec(text); match; match = PREAMBLE.exec(text))
    text = text.slice(match[0].length);
  return text;
}

/** Decodes XML as UTF-8, or as UTF-16 if it starts with a byte order mark. */
function decode(head: Uint8Array): string {
  const [first, second] = head;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(head);
}
