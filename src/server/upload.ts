import type { IncomingMessage } from 'node:http';
import busboy from 'busboy';
import type { TextField } from '../conversion/form-options.ts';
import { ClientDisconnectedError, serviceError, serviceErrorFrom } from '../errors.ts';
import type { Workspace } from '../files/workspace.ts';
import { sanitizeForDisplay } from '../text.ts';
import {
  createFileCollector,
  type FileCollectorOptions,
  type ReceivedFile,
  type RefusedFile,
} from './intake.ts';
import { MultipartNormalizer } from './multipart/normalizer.ts';
import { parseParameters } from './multipart/parameters.ts';

/** Multipart body → files in the workspace. Limits are kept while the bytes arrive, not after. */

export interface UploadOptions extends FileCollectorOptions {
  /** The name that file parts must have; others that mean the same. */
  readonly fileField: string;
  readonly fileFieldAliases: readonly string[];
  /** For the whole body, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a client may send less than {@link MIN_BYTES_PER_SECOND}, in milliseconds; by default {@link RATE_WINDOW_MS}. */
  readonly rateWindowMs?: number;
  /** Whether the request goes on without a file that is no good, by the fields that came before it. */
  readonly skipInvalid: (fields: readonly TextField[]) => boolean;
}

export interface Upload {
  readonly fields: readonly TextField[];
  /** In the order they came. */
  readonly files: readonly (ReceivedFile | RefusedFile)[];
}

/** Bytes a second: a tenth of what the slowest mobile networks carry. Who sends less holds a place for nothing. */
export const MIN_BYTES_PER_SECOND = 1024;
const RATE_WINDOW_MS = 10_000;

/** No field that means anything here is longer, and no form has more of them. */
const MAX_FIELD_BYTES = 1024;
export const MAX_FIELDS = 100;
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
export async function receiveUpload(
  req: IncomingMessage,
  workspace: Workspace,
  rules: UploadOptions,
  signal: AbortSignal,
): Promise<Upload> {
  // Who left before anybody listened would otherwise be waited for until the deadline.
  if (req.destroyed) throw new ClientDisconnectedError();
  const { normalizer, parser } = openParser(req);
  const fields: TextField[] = [];
  const halted = new AbortController();
  const intake = createFileCollector(workspace, rules, halted.signal);
  let parts = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let failure: Error | undefined;

  const stop = (error: Error): void => {
    if (failure) return;
    failure = error;
    halted.abort();
    req.unpipe(normalizer);
    req.resume();
    normalizer.destroy();
    parser.destroy();
  };
  const timer = setTimeout(() => stop(serviceError('UPLOAD_TIMEOUT', rules.timeoutMs)), rules.timeoutMs);
  const watch = monitorRate(req, rules.rateWindowMs ?? RATE_WINDOW_MS, () =>
    stop(serviceError('UPLOAD_TOO_SLOW', MIN_BYTES_PER_SECOND)),
  );
  const { promise: parsed, resolve: parserClosed } = Promise.withResolvers<void>();

  parser.on('field', (name: string | undefined, value) => {
    fields.push([name ?? '', value]);
    if (value !== '' && isFileField(name, rules)) stop(serviceError('FILE_AS_TEXT', name));
  });
  parser.on('file', (field: string | undefined, stream, { filename }) => {
    stream.on('error', () => {}); // a body cut short is told by the parser, too
    // The parser finishes its chunk even when it has been stopped: a file in it would never end.
    if (failure) return void stream.destroy();
    const wrong = validatePart(field, rules, parts);
    if (wrong) return stop(wrong);
    parts += 1;
    // Left alone when it is not read to its end, since the parser waits for it: what remains is thrown away.
    const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const goesOn = rules.skipInvalid(fields);
    writing = writing
      .then(() => (failure ? undefined : intake.take(filename, bytes, goesOn)))
      .then(() => void stream.resume(), stop);
  });
  parser.on('fieldsLimit', () => stop(serviceError('TOO_MANY_FIELDS', MAX_FIELDS)));
  for (const stream of [normalizer, parser])
    stream.on('error', (cause) => stop(serviceErrorFrom(cause, 'BODY_CUT_SHORT')));
  parser.on('close', parserClosed);
  req.on('error', (cause) => stop(new ClientDisconnectedError({ cause })));
  req.on('close', () => req.complete || stop(new ClientDisconnectedError()));
  signal.addEventListener('abort', () => stop(new ClientDisconnectedError()));
  req.pipe(normalizer).pipe(parser);

  await parsed;
  await writing;
  clearTimeout(timer);
  clearInterval(watch);
  if (failure) throw failure;
  if (intake.files.length === 0) throw serviceError('NO_FILE', rules.fileField);
  return { fields, files: intake.files };
}

/** Calls `tooSlow` when a client sends next to nothing for a while, and it is not we who keep it waiting. */
function monitorRate(req: IncomingMessage, patienceMs: number, tooSlow: () => void): NodeJS.Timeout {
  let before = req.socket.bytesRead;
  return setInterval(() => {
    const received = req.socket.bytesRead - before;
    before += received;
    const ours = req.complete || req.isPaused();
    if (!ours && received < (MIN_BYTES_PER_SECOND * patienceMs) / 1000) tooSlow();
  }, patienceMs);
}

/** How much a request's body may have: what it says, or all that is allowed. */
export function expectedBytes(req: IncomingMessage, { maxFiles, maxFileBytes }: UploadOptions): number {
  const most = maxFiles * maxFileBytes;
  const said = Number(req.headers['content-length'] ?? most);
  return Math.min(Number.isFinite(said) ? said : most, most);
}

function openParser(req: IncomingMessage): { normalizer: MultipartNormalizer; parser: busboy.Busboy } {
  const encoding = req.headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') throw serviceError('ENCODED_BODY');
  const type = parseParameters(req.headers['content-type'] ?? '');
  const boundary = type?.parameters.get('boundary') ?? '';
  if (type?.value !== 'multipart/form-data' || !BOUNDARY.test(boundary)) throw serviceError('NOT_MULTIPART');
  const quoted = boundary.replace(/["\\]/g, '\\$&');
  return {
    normalizer: new MultipartNormalizer(boundary),
    // Every part is a file or a text field, so that the limits on these are limits on all parts.
    parser: busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${quoted}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_FIELD_BYTES },
    }),
  };
}

function validatePart(field: string | undefined, rules: UploadOptions, parts: number): Error | undefined {
  const { fileField, maxFiles } = rules;
  if (!isFileField(field, rules)) {
    return serviceError(
      'UNEXPECTED_FILE',
      field === undefined ? 'without a name' : `"${sanitizeForDisplay(field)}"`,
      fileField,
    );
  }
  return parts >= maxFiles ? serviceError('TOO_MANY_FILES', maxFiles) : undefined;
}

function isFileField(
  field: string | undefined,
  { fileField, fileFieldAliases }: UploadOptions,
): field is string {
  return field !== undefined && (field === fileField || fileFieldAliases.includes(field));
}
