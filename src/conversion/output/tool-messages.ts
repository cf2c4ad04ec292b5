/**
 * @module What ImageMagick reports on standard error, told apart from the words of a picture that it quotes.
 *
 * Both versions print a message as `program: reason 'object' @ severity/source.c/Function/line.` and quote names that
 * a file contains, such as that of a colour profile. A name may have line breaks and so contain a whole message.
 */

const MESSAGE = /^[\w.-]+: (.+ @ (?:warning|error|fatal)\/\w+\.c\/\w+\/\d+\.)$/;

/** The lines that have the shape of a message, without the name of the program. */
export function messagesIn(stderr: string): string[] {
  return stderr.split('\n').flatMap((line) => MESSAGE.exec(line)?.[1] ?? []);
}

/**
 * The messages, or none when any line is not one: a quoted name with line breaks leaves at least one such line.
 * libpng quotes at most 78 bytes of a name, which is too short for a message and what would hide it.
 */
export function trustedMessagesIn(stderr: string): string[] {
  const messages = messagesIn(stderr);
  const lines = stderr.split('\n').filter((line) => line !== '');
  return messages.length === lines.length ? messages : [];
}
