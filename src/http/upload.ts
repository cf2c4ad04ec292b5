import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { INPUT_FILE } from '../convert/plan/types.ts';
import { SNIFF_BYTES, sniff, type Verdict } from '../convert/sniff.ts';
import { ClientGone, fail, failBecause } from '../errors.ts';
import type { Workspace } from '../files/workspace.ts';
import { INPUTS, type InputType } from '../formats.ts';

/** Multipart body → files in the workspace. Limits are kept while the bytes arrive, not after. */

export interface UploadRules {
  /** The name that file parts must have; others that mean the same. */
  readonly fileField: string;
  readonly fileFieldAliases: readonly string[];
  readonly maxFiles: number;
  /** Per file. */
  readonly maxFileBytes: number;
  /** For the whole body, in milliseconds. */
  readonly timeoutMs: number;
  readonly accepts: readonly InputType[];
  /** How messages name the file at `position` (from 1), which the client calls `name`. */
  readonly label: (position: number, name: string | undefined) => string;
}

export interface ReceivedFile {
  /** What the client called it: any text at all. */
  readonly name: string | undefined;
  readonly label: string;
  readonly type: InputType;
  readonly folder: string;
  readonly bytes: number;
}

export interface Upload {
  readonly fields: readonly TextField[];
  readonly files: readonly ReceivedFile[];
}

export type TextField = readonly [name: string, value: string];

/** No field that means anything here is longer, and no form has more of them. */
const MOST_FIELD_BYTES = 1024;
const MOST_FIELDS = 100;

/**
 * Receives a request's body.
 *
 * The first thing wrong ends it: the error is thrown once nothing is written any
 * more, while the rest of the body is read and thrown away, because most clients
 * only look at the answer when they have sent everything.
 *
 * @throws ServiceError for what the client did wrong, ClientGone when it left
 */
export async function receive(
  req: IncomingMessage,
  workspace: Workspace,
  rules: UploadRules,
): Promise<Upload> {
  // Who left before anybody listened would otherwise be waited for until the deadline.
  if (req.destroyed) throw new ClientGone();
  const parser = openParser(req);
  const fields: TextField[] = [];
  const files: ReceivedFile[] = [];
  let seen = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let trouble: Error | undefined;

  const stop = (error: Error): void => {
    if (trouble) return;
    trouble = error;
    req.unpipe(parser);
    req.resume();
    parser.destroy();
  };
  const timer = setTimeout(() => stop(fail('UPLOAD_TIMEOUT', rules.timeoutMs)), rules.timeoutMs);
  const { promise: parsed, resolve: parserClosed } = Promise.withResolvers<void>();

  parser.on('field', (name: string | undefined, value) => fields.push([name ?? '', value]));
  parser.on('file', (field: string | undefined, stream, { filename }) => {
    stream.on('error', () => {}); // a body cut short is told by the parser, too
    const wrong = wrongPart(field, rules, seen);
    if (wrong) return stop(wrong);
    seen += 1;
    const position = seen;
    writing = writing
      .then(() => store(stream, position, filename, workspace, rules))
      .then((file) => files.push(file), stop);
  });
  parser.on('fieldsLimit', () => stop(fail('TOO_MANY_FIELDS', MOST_FIELDS)));
  parser.on('partsLimit', () => stop(fail('TOO_MANY_FIELDS', MOST_FIELDS)));
  parser.on('error', (cause) => stop(failBecause(cause, 'BODY_CUT_SHORT')));
  parser.on('close', parserClosed);
  req.on('error', (cause) => stop(new ClientGone({ cause })));
  req.on('close', () => req.complete || stop(new ClientGone()));
  req.pipe(parser);

  await parsed;
  await writing;
  clearTimeout(timer);
  if (trouble) throw trouble;
  if (files.length === 0) throw missingFile(fields, rules);
  return { fields, files };
}

function openParser(req: IncomingMessage): busboy.Busboy {
  const encoding = req.headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') throw fail('ENCODED_BODY');
  if (!/^multipart\/form-data\b/i.test(req.headers['content-type'] ?? '')) throw fail('NOT_MULTIPART');
  try {
    return busboy({
      headers: req.headers,
      defParamCharset: 'utf8',
      limits: { fields: MOST_FIELDS, fieldSize: MOST_FIELD_BYTES, parts: 2 * MOST_FIELDS },
    });
  } catch (cause) {
    throw failBecause(cause, 'NOT_MULTIPART');
  }
}

function wrongPart(field: string | undefined, rules: UploadRules, seen: number): Error | undefined {
  const { fileField, fileFieldAliases, maxFiles } = rules;
  if (field !== fileField && !fileFieldAliases.includes(field ?? '')) {
    return fail(
      'UNEXPECTED_FILE',
      field === undefined ? 'without a name' : `"${field.slice(0, 40)}"`,
      fileField,
    );
  }
  return seen >= maxFiles ? fail('TOO_MANY_FILES', maxFiles) : undefined;
}

function missingFile(fields: readonly TextField[], { fileField }: UploadRules): Error {
  const sentAsText = fields.some(([name, value]) => name === fileField && value !== '');
  return fail(sentAsText ? 'FILE_AS_TEXT' : 'NO_FILE', fileField);
}

async function store(
  stream: Readable,
  position: number,
  name: string | undefined,
  workspace: Workspace,
  rules: UploadRules,
): Promise<ReceivedFile> {
  const label = rules.label(position, name);
  const folder = await workspace.folder(String(position));
  const file = await open(join(folder, INPUT_FILE), 'wx', 0o600);
  try {
    const gate = createTypeGate(label, rules.accepts);
    let bytes = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > rules.maxFileBytes) throw fail('FILE_TOO_LARGE', label, readable(rules.maxFileBytes));
      await gate.look(chunk);
      await file.appendFile(chunk);
    }
    if (bytes === 0) throw fail('EMPTY_FILE', label);
    return { name, label, folder, bytes, type: await gate.end() };
  } finally {
    await file.close();
  }
}

/** Collects a file's first bytes until they tell its type, and refuses the types that cannot be converted. */
function createTypeGate(label: string, accepts: readonly InputType[]) {
  let head = Buffer.alloc(0);
  let enough = SNIFF_BYTES;
  let verdict: Verdict = 'unsure';

  const judge = async (complete: boolean): Promise<void> => {
    verdict = await sniff(head, complete);
    if (verdict !== 'unsure' && (verdict === 'unknown' || !accepts.includes(verdict))) {
      const supported = accepts.map((type) => INPUTS[type].label).join(', ');
      throw fail('UNSUPPORTED_TYPE', label, supported);
    }
  };
  return {
    async look(chunk: Buffer): Promise<void> {
      if (verdict !== 'unsure') return;
      head = Buffer.concat([head, chunk]);
      if (head.length < enough) return;
      enough = head.length * 2; // so that many small pieces are not each a reason to look again
      await judge(false);
    },
    async end(): Promise<InputType> {
      if (verdict === 'unsure') await judge(true);
      return verdict as InputType;
    },
  };
}

/** Bytes as people say them. */
function readable(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB (${bytes} bytes)` : `${bytes} bytes`;
}
