/** @module Messages to and from a fork server, as `fork-server.c` describes them. */
import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
import type { Command, Exit } from '../command.ts';

/** Returns how a job ended, from the body of its last message. */
export function toExit(body: Buffer): Exit {
  const [exitCode = 0, signal = 0] = readNumbers(body);
  return signal === 0 ? { exitCode } : { signal: signalName(signal) };
}

/** Limits and rights of a job. */
export interface Confinement {
  /** Address space, in bytes. */
  readonly memoryBytes: number;
  /** Processor time of all threads, in seconds. */
  readonly cpuSeconds: number;
  /** Size of each file that the job writes, in bytes. */
  readonly fileBytes: number;
  /** Open files. */
  readonly files: number;
  /** Files and folders that the job can read, or `all` if it can access every file. */
  readonly readable: readonly string[] | 'all';
  /** Path of a seccomp filter. */
  readonly filter?: string | undefined;
}

/** A job of a program that is preloaded with the fork server. */
export interface Job extends Pick<Command, 'cwd' | 'outputs' | 'stdin' | 'stdout'> {
  /** Arguments of the program. The first one is its own path. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly confinement: Confinement;
}

/** Bytes of the header of a message. */
export const HEADER_BYTES = 12;
/** Maximum length of a message: `MAX_REQUEST` in fork-server.c. */
const MAX_REQUEST_BYTES = 2 * 1024 ** 2;

/**
 * Returns the request to run a job.
 *
 * @throws {Error} for a job that the server would not accept
 */
export function encodeJob(id: number, { args, env, cwd, outputs, stdin, stdout, confinement }: Job): Buffer {
  const { memoryBytes, cpuSeconds, fileBytes, files, readable, filter } = confinement;
  const fields = [
    ...args.map((arg) => `a${arg}`),
    ...Object.entries(env).map(([name, value]) => `e${name}=${value}`),
    `d${cwd}`,
    ...(outputs?.map((name) => `o${name}`) ?? ['c']),
    ...(stdin === undefined ? [] : [`i${stdin}`]),
    ...(stdout === undefined ? [] : [`p${stdout}`]),
    `m${Math.floor(memoryBytes)}`,
    `t${cpuSeconds}`,
    `z${Math.ceil(fileBytes)}`,
    `n${files}`,
    ...(readable === 'all' ? ['u'] : readable.map((path) => `r${path}`)),
    ...(filter === undefined ? [] : [`s${filter}`]),
  ];
  if (fields.some((field) => field.includes('\0'))) throw new Error('an argument must not contain NUL');
  const body = Buffer.from(`${fields.join('\0')}\0`);
  if (body.length > MAX_REQUEST_BYTES) throw new Error('the arguments are too long');
  return message('J', id, body);
}

/** Returns the request to kill a job. */
export const encodeKill = (id: number): Buffer => message('K', id, Buffer.alloc(0));

function message(kind: string, id: number, body: Buffer): Buffer {
  const words = Uint32Array.of(body.length, id, kind.charCodeAt(0));
  return Buffer.concat([Buffer.from(words.buffer), body]);
}

/** A message of the server. */
export interface Answer {
  readonly kind: string;
  readonly id: number;
  readonly body: Buffer;
}

/** Returns a function from bytes of the server to the messages that they complete. */
export function createAnswerReader(): (chunk: Buffer) => Answer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const answers: Answer[] = [];
    while (rest.length >= HEADER_BYTES) {
      const [length = 0, id = 0, kind = 0] = readNumbers(rest.subarray(0, HEADER_BYTES));
      const end = HEADER_BYTES + length;
      if (rest.length < end) break;
      answers.push({ kind: String.fromCharCode(kind), id, body: rest.subarray(HEADER_BYTES, end) });
      rest = rest.subarray(end);
    }
    return answers;
  };
}

/** Reads integers of 32 bits in the byte order of the machine. */
export const readNumbers = (body: Buffer): number[] => [
  ...new Uint32Array(new Uint8Array(body).buffer, 0, Math.floor(body.length / 4)),
];

/** Returns the name of a signal, such as `SIGSEGV`. */
const signalName = (number: number): NodeJS.Signals =>
  Object.entries(constants.signals).find(([, known]) => known === number)?.[0] as NodeJS.Signals;

/** Returns the error for a number of errno(3), with its name as the code. */
export function systemError(number: number): Error {
  const [code] = getSystemErrorMap().get(-number) ?? [`errno ${number}`];
  return Object.assign(new Error(`the fork server cannot start a process: ${code}`), { code });
}
