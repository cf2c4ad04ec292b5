import type { IncomingMessage } from 'node:http';
import busboy from 'busboy';
import { ClientGone, fail, failBecause } from '../errors.ts';
import type { Workspace } from '../files/workspace.ts';
import { printable } from '../printable.ts';
import { createIntake, type IntakeRules, type ReceivedFile, type RefusedFile } from './intake.ts';
import { MultipartNormalizer } from './multipart/normalizer.ts';
import { parseParameters } from './multipart/parameters.ts';

/** Multipart body → files in the workspace. Limits are kept while the bytes arrive, not after. */

export interface UploadRules extends IntakeRules {
  /** The name that file parts must have; others that mean the same. */
  readonly fileField: string;
  readonly fileFieldAliases: readonly string[];
  /** For the whole body, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a client may send less than {@link LEAST_RATE}, in milliseconds; by default {@link PATIENCE_MS}. */
  readonly patienceMs?: number;
  /** Whether the request goes on without a file that is no good, by the fields that came before it. */
  readonly goesOn: (fields: readonly TextField[]) => boolean;
}

export interface Upload {
  readonly fields: readonly TextField[];
  /** In the order they came. */
  readonly files: readonly (ReceivedFile | RefusedFile)[];
}

export type TextField = readonly [name: string, value: string];

/** Bytes a second: a tenth of what the slowest mobile networks carry. Who sends less holds a place for nothing. */
export const LEAST_RATE = 1024;
const PATIENCE_MS = 10_000;

/** No field that means anything here is longer, and no form has more of them. */
const MOST_FIELD_BYTES = 1024;
export const MOST_FIELDS = 100;
/** As a quoted string (RFC 2046, section 5.1.1, has 70 characters, fewer kinds of them, and no blank at the end). */
const BOUNDARY = /^[ -~]{0,69}[!-~]$/;

/**
 * Receives a request's body.
 *
 * The first thing wrong ends it: the error is thrown once nothing is written any
 * more, while the rest of the body is read and thrown away, because most clients
 * only look at the answer when they have sent everything.
 *
 * @param signal fires when the client has left, also after it has sent everything
 * @throws ServiceError for what the client did wrong, ClientGone when it left
 */
export async function receive(
  req: IncomingMessage,
  workspace: Workspace,
  rules: UploadRules,
  signal: AbortSignal,
): Promise<Upload> {
  // Who left before anybody listened would otherwise be waited for until the deadline.
  if (req.destroyed) throw new ClientGone();
  const { normalizer, parser } = openParser(req);
  const fields: TextField[] = [];
  const halted = new AbortController();
  const intake = createIntake(workspace, rules, halted.signal);
  let parts = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let trouble: Error | undefined;

  const stop = (error: Error): void => {
    if (trouble) return;
    trouble = error;
    halted.abort();
    req.unpipe(normalizer);
    req.resume();
    normalizer.destroy();
    parser.destroy();
  };
  const timer = setTimeout(() => stop(fail('UPLOAD_TIMEOUT', rules.timeoutMs)), rules.timeoutMs);
  const watch = watchRate(req, rules.patienceMs ?? PATIENCE_MS, () =>
    stop(fail('UPLOAD_TOO_SLOW', LEAST_RATE)),
  );
  const { promise: parsed, resolve: parserClosed } = Promise.withResolvers<void>();

  parser.on('field', (name: string | undefined, value) => {
    fields.push([name ?? '', value]);
    if (value !== '' && isFileField(name, rules)) stop(fail('FILE_AS_TEXT', name));
  });
  parser.on('file', (field: string | undefined, stream, { filename }) => {
    stream.on('error', () => {}); // a body cut short is told by the parser, too
    // The parser finishes its chunk even when it has been stopped: a file in it would never end.
    if (trouble) return void stream.destroy();
    const wrong = wrongPart(field, rules, parts);
    if (wrong) return stop(wrong);
    parts += 1;
    // Left alone when it is not read to its end, since the parser waits for it: what remains is thrown away.
    const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const goesOn = rules.goesOn(fields);
    writing = writing
      .then(() => (trouble ? undefined : intake.take(filename, bytes, goesOn)))
      .then(() => void stream.resume(), stop);
  });
  parser.on('fieldsLimit', () => stop(fail('TOO_MANY_FIELDS', MOST_FIELDS)));
  for (const stream of [normalizer, parser])
    stream.on('error', (cause) => stop(failBecause(cause, 'BODY_CUT_SHORT')));
  parser.on('close', parserClosed);
  req.on('error', (cause) => stop(new ClientGone({ cause })));
  req.on('close', () => req.complete || stop(new ClientGone()));
  signal.addEventListener('abort', () => stop(new ClientGone()));
  req.pipe(normalizer).pipe(parser);

  await parsed;
  await writing;
  clearTimeout(timer);
  clearInterval(watch);
  if (trouble) throw trouble;
  if (intake.files.length === 0) throw fail('NO_FILE', rules.fileField);
  return { fields, files: intake.files };
}

/** Calls `tooSlow` when a client sends next to nothing for a while, and it is not we who keep it waiting. */
function watchRate(req: IncomingMessage, patienceMs: number, tooSlow: () => void): NodeJS.Timeout {
  let before = req.socket.bytesRead;
  return setInterval(() => {
    const received = req.socket.bytesRead - before;
    before += received;
    const ours = req.complete || req.isPaused();
    if (!ours && received < (LEAST_RATE * patienceMs) / 1000) tooSlow();
  }, patienceMs);
}

/** How much a request's body may have: what it says, or all that is allowed. */
export function bodyBytes(req: IncomingMessage, { maxFiles, maxFileBytes }: UploadRules): number {
  const most = maxFiles * maxFileBytes;
  const said = Number(req.headers['content-length'] ?? most);
  return Math.min(Number.isFinite(said) ? said : most, most);
}

function openParser(req: IncomingMessage): { normalizer: MultipartNormalizer; parser: busboy.Busboy } {
  const encoding = req.headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') throw fail('ENCODED_BODY');
  const type = parseParameters(req.headers['content-type'] ?? '');
  const boundary = type?.parameters.get('boundary') ?? '';
  if (type?.value !== 'multipart/form-data' || !BOUNDARY.test(boundary)) throw fail('NOT_MULTIPART');
  const quoted = boundary.replace(/["\\]/g, '\\$&');
  return {
    normalizer: new MultipartNormalizer(boundary),
    // Every part is a file or a text field, so that the limits on these are limits on all parts.
    parser: busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${quoted}"` },
      defParamCharset: 'utf8',
      limits: { fields: MOST_FIELDS, fieldSize: MOST_FIELD_BYTES },
    }),
  };
}

function wrongPart(field: string | undefined, rules: UploadRules, parts: number): Error | undefined {
  const { fileField, maxFiles } = rules;
  if (!isFileField(field, rules)) {
    return fail(
      'UNEXPECTED_FILE',
      field === undefined ? 'without a name' : `"${printable(field)}"`,
      fileField,
    );
  }
  return parts >= maxFiles ? fail('TOO_MANY_FILES', maxFiles) : undefined;
}

function isFileField(
  field: string | undefined,
  { fileField, fileFieldAliases }: UploadRules,
): field is string {
  return field !== undefined && (field === fileField || fileFieldAliases.includes(field));
}
