/**
 * @module Receipts: a line of JSON for each result of `convert --receipts`, and the `verify` command, which checks files against
 * them. With a key, a line is a DSSE envelope (https://github.com/secure-systems-lab/dsse) with an in-toto statement.
 */
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { appendFile, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { hashFile } from '../conversion/key.ts';
import { isMissing, systemReason } from '../files/system.ts';
import { plural, sanitizeForDisplay } from '../text.ts';
import { CliError } from './context.ts';
import { type ConvertedFile, type OutputJob, readUnchanged } from './convert/converter.ts';
import { withWriteErrors } from './convert/output.ts';

const file = z.object({ path: z.string(), sha256: z.string().regex(/^[0-9a-f]{64}$/), bytes: z.number() });
const schema = z.object({
  source: file.extend({ type: z.string().optional() }),
  /** `name` is the path below the output folder. */
  result: file.extend({ name: z.string(), type: z.string() }),
  options: z.looseObject({}),
  key: z.string().optional(),
  versions: z.string(),
  notes: z.array(z.string()),
  verification: z.looseObject({}).optional(),
  time: z.string(),
});
type Receipt = z.infer<typeof schema>;

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const envelope = z.object({
  payloadType: z.literal(PAYLOAD_TYPE),
  payload: z.string(),
  signatures: z.array(z.object({ sig: z.string(), keyid: z.string() })).min(1),
});
const STATEMENT = { _type: 'https://in-toto.io/Statement/v1', predicateType: 'urn:imagemill:receipt:1' };

export type Receipts = Awaited<ReturnType<typeof openReceipts>>;

/**
 * Opens a file for receipts, which are appended.
 *
 * @param keyPath PEM file with an Ed25519 key that signs them
 * @param name returns the path of a result below the output folder
 * @throws {CliError} if a file cannot be used
 */
export async function openReceipts(
  path: string,
  keyPath: string | undefined,
  name: (output: string) => string,
) {
  const key = keyPath === undefined ? undefined : await readKey(keyPath, createPrivateKey);
  await appendFile(path, '').catch((error) => {
    throw new CliError(`--receipts ${path} cannot be written: ${systemReason(error)}.`);
  });
  return {
    /**
     * Prepares the receipt of a conversion before its result is written, while the source is the one that was converted.
     *
     * @returns a function that appends the receipt
     * @throws {FileError} SOURCE_CHANGED, UNREADABLE
     */
    async prepare({ input, output, options }: OutputJob, converted: ConvertedFile, versions: string) {
      const { type, key: conversionKey, bytesBefore, bytesAfter, notes, verification } = converted;
      const source = await readUnchanged(input, converted.sourceState, () => hashFile(input));
      const result = await hashFile(converted.path);
      const receipt: Receipt = {
        source: { path: input, type, sha256: source, bytes: bytesBefore },
        result: { path: output, name: name(output), type: options.format, sha256: result, bytes: bytesAfter },
        options: { ...options },
        key: conversionKey,
        ...{ versions, notes: [...notes], verification: verification && { ...verification } },
        time: new Date().toISOString(),
      };
      const line = `${JSON.stringify(key ? seal(receipt, key) : receipt)}\n`;
      return () => withWriteErrors(path, () => appendFile(path, line));
    },
  };
}

/** Signs a receipt. */
function seal(receipt: Receipt, key: KeyObject): z.infer<typeof envelope> {
  const { name, sha256 } = receipt.result;
  const statement = { ...STATEMENT, subject: [{ name, digest: { sha256 } }], predicate: receipt };
  const payload = Buffer.from(JSON.stringify(statement));
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const signature = {
    keyid: hash('sha256', publicKey),
    sig: sign(null, encodePayload(payload), key).toString('base64'),
  };
  return { payloadType: PAYLOAD_TYPE, payload: payload.toString('base64'), signatures: [signature] };
}

/** Returns the bytes that are signed: the pre-authentication encoding of DSSE v1. */
function encodePayload(payload: Buffer): Buffer {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

async function readKey(path: string, parse: (pem: string) => KeyObject): Promise<KeyObject> {
  try {
    const key = parse(await readFile(path, 'utf8'));
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall)
      throw new CliError(`--key ${path} cannot be read: ${systemReason(error)}.`);
  }
  throw new CliError(`--key ${path}: expected an Ed25519 key in PEM.`);
}

/**
 * Runs `imagemill verify`: checks results, and sources that still exist, against their receipts.
 *
 * @returns the exit status: 0 if all are as recorded, 1 if not
 * @throws {CliError} if the receipts cannot be read
 */
export async function verifyReceipts(
  path: string,
  { against, key: keyPath }: { against?: string; key?: string },
): Promise<number> {
  const key = keyPath === undefined ? undefined : await readKey(keyPath, createPublicKey);
  const receipts = new Map<string, Receipt>();
  let problems = 0;
  const report = (text: string): void => {
    problems += 1;
    console.error(`imagemill: ${sanitizeForDisplay(text, 1000)}`);
  };
  /** Returns the digest of a file. Reports a file that cannot be read. */
  const digestOf = (file: string): Promise<string | undefined> =>
    hashFile(file).catch((error) => {
      report(`${file} ${isMissing(error) ? 'is missing' : `cannot be read: ${systemReason(error)}`}.`);
      return undefined;
    });
  let number = 0;
  let unchecked = 0;
  try {
    for await (const line of createInterface({ input: createReadStream(path) })) {
      number += 1;
      if (line === '') continue;
      const { receipt, isSigned = false } = readLine(line, key);
      if (isSigned && !key) unchecked += 1;
      if (receipt)
        receipts.set(receipt.result.name, receipt); // a later line replaces an earlier one
      else report(`line ${number}: the signature is wrong or missing.`);
    }
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).syscall ? systemReason(error) : 'it is not a receipt';
    throw new CliError(`${path}${number > 0 ? `, line ${number}` : ''}: ${why}.`);
  }
  if (receipts.size === 0 && problems === 0) throw new CliError(`${path} has no receipts.`);
  if (unchecked > 0)
    console.error(`imagemill: ${plural(unchecked, 'signature')} not checked: set --key to the public key.`);
  const names = new Map([...receipts].map(([name, { result }]) => [result.sha256, name]));
  for (const [name, { source, result }] of receipts) {
    const shown = against === undefined ? result.path : join(against, name);
    const found = await digestOf(shown);
    if (found !== undefined && found !== result.sha256) {
      const other = names.get(found);
      report(other ? `${shown} has the content of ${other}.` : `${shown} has changed.`);
    }
    const kept = await stat(source.path).catch(() => undefined);
    const present = kept?.isFile() ? await digestOf(source.path) : undefined;
    if (present !== undefined && present !== source.sha256)
      report(`${source.path} has changed since its conversion.`);
  }
  const found = problems === 0 ? 'all files are as recorded' : plural(problems, 'problem');
  console.log(`${plural(receipts.size, 'receipt')}: ${found}`);
  return problems === 0 ? 0 : 1;
}

/**
 * Reads a line.
 *
 * @returns no receipt if a key is given and the signature is wrong or missing
 * @throws {Error} if it is not a receipt
 */
function readLine(
  line: string,
  key: KeyObject | undefined,
): { readonly receipt?: Receipt; readonly isSigned?: true } {
  const value: unknown = JSON.parse(line);
  const sealed = envelope.safeParse(value);
  if (!sealed.success) {
    const receipt = schema.parse(value);
    return key ? {} : { receipt };
  }
  const payload = Buffer.from(sealed.data.payload, 'base64');
  const isGenuine = (pub: KeyObject): boolean =>
    sealed.data.signatures.some(({ sig }) =>
      verify(null, encodePayload(payload), pub, Buffer.from(sig, 'base64')),
    );
  if (key && !isGenuine(key)) return {};
  const { predicate } = z.object({ predicate: schema }).parse(JSON.parse(payload.toString('utf8')));
  return { receipt: predicate, isSigned: true };
}
