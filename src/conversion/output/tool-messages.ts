/**
 * @module Parses messages of ImageMagick on standard error, and distinguishes them from names that they quote.
 *
 * ImageMagick 6 and 7 print `program: reason 'object' @ severity/source.c/Function/line.` and quote names from the
 * input, such as the name of a colour profile. A name can have line breaks, so it can contain a whole message.
 */

const MESSAGE = /^[\w.-]+: (.+ @ (?:warning|error|fatal)\/\w+\.c\/\w+\/\d+\.)$/;

/** Returns the lines that look like messages, without the name of the program. */
export function messagesIn(stderr: string): string[] {
  return stderr.split('\n').flatMap((line) => MESSAGE.exec(line)?.[1] ?? []);
}

/**
 * Returns the messages, or none if any line is not a message: a quoted name with line breaks leaves such a line.
 * libpng quotes at most 78 bytes of a name, too few for a complete message that hides the other lines.
 */
export function trustedMessagesIn(stderr: string): string[] {
  const messages = messagesIn(stderr);
  const lines = stderr.split('\n').filter((line) => line !== '');
  return messages.length === lines.length ? messages : [];
}
