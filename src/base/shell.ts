/** @module Formats command lines for a POSIX shell. Runs in Node.js and in browsers. */

/** Words that need no quotes in a POSIX shell. */
const UNQUOTED = /^[\w@%+=:,./-]+$/;

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Formats a command line, with quotes where needed. Names of `stdin` and `stdout` need none. */
export function shellWords(words: readonly string[], stdin?: string, stdout?: string): string {
  const line = words.map((word) => (UNQUOTED.test(word) ? word : quote(word))).join(' ');
  const input = stdin === undefined ? '' : ` < ${stdin}`;
  return `${line}${input}${stdout === undefined ? '' : ` > ${stdout}`}`;
}

interface CurlForm {
  readonly url: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Path of the watermark. */
  readonly watermark?: string | undefined;
  readonly fileField: 'file' | 'files';
  /** Paths of the files, after the fields. */
  readonly files: readonly string[];
  /** Options that name the output, such as `-o photo.webp`. */
  readonly output: readonly string[];
  /** Media types of which the server chooses one. */
  readonly accept?: string | undefined;
  /** Variable of the shell with the API key, which does not belong on a screen itself. */
  readonly keyVariable?: string | undefined;
}

/** Formats a curl command. It fails for an error response, and saves its message. */
export function formatCurl(form: CurlForm): string {
  const { url, fields, watermark, fileField, files, output, accept, keyVariable } = form;
  const parts = [
    ...fields.map(([name, value]) => `${name}=${value}`),
    ...(watermark === undefined ? [] : [`watermark=@${quoteForCurl(watermark)}`]),
    ...files.map((path) => `${fileField}=@${quoteForCurl(path)}`),
  ];
  const accepts = accept === undefined ? [] : ['-H', `Accept: ${accept}`];
  const words = ['--fail-with-body', ...accepts, ...output, ...parts.flatMap((part) => ['-F', part]), url];
  const header = keyVariable === undefined ? '' : ` -H "Authorization: Bearer $${keyVariable}"`;
  return `curl${header} ${shellWords(words)}`;
}

/** Quotes a path for `-F NAME=@PATH` of curl, which would interpret `;`, `,`, `"` or `\`. */
function quoteForCurl(path: string): string {
  return /[;,"\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path;
}
