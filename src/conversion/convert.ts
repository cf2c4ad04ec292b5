import { renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ClientDisconnectedError, serviceError, serviceErrorFrom, type TimeLimit } from '../errors.ts';
import type { RequestRoom } from '../files/disk-room.ts';
import { removeFolder } from '../files/workspace.ts';
import { INPUTS, type InputType, OUTPUTS, type OutputType } from '../formats.ts';
import type { Output, RunCommand } from '../process/command.ts';
import type { ConversionQueue } from '../process/queue.ts';
import type { Tool, Toolchain } from '../process/toolchain.ts';
import { encodeWithin } from './encode-within.ts';
import { decodeBitmap } from './input/bmp/decode.ts';
import { readDecoded } from './input/decoded.ts';
import { repairInput } from './input/repair.ts';
import { inspect } from './inspect/index.ts';
import { HeaderTooComplexError } from './inspect/window-reader.ts';
import { checkLimits, type ImageLimits } from './limits.ts';
import { keptMetadata, notesIn } from './output/notes.ts';
import {
  assertNotRefused,
  explainUnsupportedJpeg,
  invalidOutput,
  isProfileError,
  toServiceError,
  UNREADABLE_KINDS,
} from './output/tool-errors.ts';
import { isNoFile, verifyOutput } from './output/verify.ts';
import { decodingOf } from './plan/decoding.ts';
import { bytesOnDisk } from './plan/disk-estimate.ts';
import { findMisread, plan, planAgain, planMeasuring, toolsFor } from './plan/index.ts';
import { drawSmaller } from './plan/rasterize.ts';
import {
  type ConvertOptions,
  type ImageInfo,
  INPUT_FILE,
  type Note,
  type Plan,
  type Step,
  type ToolContext,
} from './plan/types.ts';

/** One file, from the bytes that were received to the bytes that are sent. */

export interface ConversionInput {
  /** A folder of its own, which holds the file as {@link INPUT_FILE}. The conversion removes it. */
  readonly folder: string;
  /** Where the bytes of the file are counted, and those of the result will be. */
  readonly room?: RequestRoom;
  readonly type: InputType;
  /** How messages name it. */
  readonly label: string;
  /** Who sent it; without one, no process works on it that works on anything else. */
  readonly client?: string;
  /** Converts kinds of files that ImageMagick misreads instead of rejecting them, to see whether it still does. */
  readonly readsMisread?: boolean;
  /** Is told of each command before it is run. */
  readonly onCommand?: (step: Step) => void;
}

export interface ConversionResult {
  /** Beside the source's folder, where no tool can change it. */
  readonly path: string;
  readonly bytes: number;
  readonly queuedMs: number;
  readonly convertedMs: number;
  /** The quality that it was encoded with, when the bytes it may have were limited. */
  readonly quality?: number;
  /** What the result lacks, or what was wrong with the file; each at most once, in a fixed order. */
  readonly notes: readonly Note[];
}

/** A conversion that is over, for those who watch. */
export interface ConversionEvent {
  readonly input: InputType;
  readonly output: OutputType;
  /** As in {@link ConversionInput}. */
  readonly client: string | undefined;
  /** Why there is no result. */
  readonly error: unknown;
  /** How long it waited, and how long it ran; nothing when it never began. */
  readonly queuedMs: number | undefined;
  readonly ranMs: number | undefined;
}

/** Files of one `group` share the pool as one client; see {@link ConversionQueue.run}. */
export type Convert = (
  source: ConversionInput,
  options: ConvertOptions,
  signal: AbortSignal,
  group?: object,
) => Promise<ConversionResult>;

export interface ConvertDeps {
  readonly toolchain: Toolchain;
  readonly pool: ConversionQueue;
  readonly run: RunCommand;
  readonly srgbProfile: string;
  readonly namedProfiles: ToolContext['namedProfiles'];
  readonly limits: ImageLimits;
  /** For one conversion, in milliseconds. */
  readonly timeoutMs: number;
  /** What a file that a tool writes may have at most. */
  readonly maxFileBytes: number;
  /** Maximum number of threads of a conversion. It uses those that no other conversion needs when it starts. */
  readonly maxThreads: number;
  /** Is told of every conversion when it is over. */
  readonly onFinished?: (conversion: ConversionEvent) => void;
}

/** A drawing can be written to take any time; an honest one takes far less than this, in milliseconds. */
const MAX_DRAWING_MS = 15_000;
/** How writing fails when there is no room: errno(3). */
const DISK_ERRORS: readonly string[] = ['ENOSPC', 'EDQUOT'];
/** And any memory; 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

/** @throws ServiceError when the tool that was to draw the picture says that all went well, and left no file */
function readDrawn(source: ConversionInput, drawn: string): Promise<ImageInfo> {
  return inspect(join(source.folder, drawn), 'png').catch((error: NodeJS.ErrnoException) => {
    throw isNoFile(error) ? invalidOutput(`${drawn}: ${error.code}`, source) : error;
  });
}

/**
 * Moves a file that a tool reads on standard input out of the folder that the tool can change. The file is opened outside of
 * the sandbox: inside its folder, the tool could put a link to any other file in its place.
 *
 * @returns the new path, beside the folder
 */
function moveOut(folder: string, name: string): string {
  const path = `${folder}.${name}`;
  renameSync(join(folder, name), path);
  return path;
}

/** One conversion while its commands run. */
interface Running {
  readonly signal: AbortSignal;
  /** When its time is over, as `performance.now()` has it. */
  readonly deadline: number;
  readonly tools: ToolContext;
  /** The new paths of the files that were moved out of its folder. */
  readonly movedOut: Map<string, string>;
}

/** Moves a file out only once: what a tool has put in its place since then is nothing to open. */
function moveOutOnce(movedOut: Map<string, string>, folder: string, name: string): string {
  const path = movedOut.get(name) ?? moveOut(folder, name);
  movedOut.set(name, path);
  return path;
}

/**
 * Makes the function that converts one file. All that it leaves on disk is the result. It removes the source's folder,
 * also when it fails.
 *
 * It throws a ServiceError that names the file, and ClientDisconnectedError when its signal fires.
 */
export function createConvert({
  toolchain,
  pool,
  run,
  srgbProfile,
  namedProfiles,
  limits,
  timeoutMs,
  maxFileBytes,
  maxThreads,
  onFinished: observe = () => {},
}: ConvertDeps): Convert {
  const machine: ToolContext = { magick: toolchain.magick?.major ?? 7, srgbProfile, namedProfiles };
  const timeoutFor = ({ tool }: Step): TimeLimit =>
    tool === 'rsvg' && timeoutMs > MAX_DRAWING_MS
      ? { ms: MAX_DRAWING_MS }
      : { ms: timeoutMs, setting: 'CONVERT_TIMEOUT_MS' };

  function prepare(
    image: ImageInfo,
    { type, label, readsMisread }: ConversionInput,
    options: ConvertOptions,
    tools = machine,
  ): Plan {
    checkLimits(image, options, limits, label);
    const misread = readsMisread ? undefined : findMisread(image, options, machine);
    if (misread) throw serviceError('UNSUPPORTED_ENCODING', label, misread);
    if (image.unreadable)
      throw serviceError('UNSUPPORTED_ENCODING', label, UNREADABLE_KINDS[image.unreadable]);
    const prepared = plan(image, options, tools);
    const needed = toolsFor(image.type, options.format, machine.magick);
    if ([...needed, ...prepared.steps.map(({ tool }) => tool)].some((tool) => !toolchain[tool])) {
      throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
    }
    return prepared;
  }

  /** @returns all that the tools printed */
  async function runPlan(
    { steps }: Pick<Plan, 'steps'>,
    source: ConversionInput,
    options: ConvertOptions,
    { signal, deadline, movedOut }: Running,
  ): Promise<Output> {
    const cwd = source.folder;
    const client = source.client !== undefined && { client: source.client };
    const printed = { stdout: '', stderr: '' };
    const todo = [...steps];
    for (let step = todo.shift(); step; step = todo.shift()) {
      source.onCommand?.(step);
      const file = (toolchain[step.tool] as Tool).path;
      const left = Math.max(1, Math.ceil(deadline - performance.now()));
      const stdin = step.stdin !== undefined && { stdin: moveOutOnce(movedOut, cwd, step.stdin) };
      const limit = Math.min(left, timeoutFor(step).ms);
      // Under the system call filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
      if (step.rendersTo) rmSync(join(cwd, step.rendersTo), { recursive: true, force: true });
      try {
        const memory = step.tool === 'rsvg' ? { memoryBytes: SVG_MAX_MEMORY } : {};
        const output = await run({
          file,
          args: step.args,
          cwd,
          timeoutMs: limit,
          signal,
          ...stdin,
          ...memory,
          ...client,
        });
        printed.stdout += output.stdout;
        printed.stderr += output.stderr;
      } catch (error) {
        throw toServiceError(error, step.tool, source, options.format, timeoutFor(step));
      }
      if (step.rendersTo) {
        const drawn = await readDrawn(source, step.rendersTo);
        checkLimits(drawn, options, limits, source.label);
        const again = drawSmaller(step.rendersTo, drawn, options);
        if (again) todo.unshift(again);
      }
    }
    assertNotRefused(printed.stderr);
    return printed;
  }

  /** Decodes kinds of bitmaps in this process that ImageMagick misreads. */
  async function decodeBitmapHere(
    image: ImageInfo,
    source: ConversionInput,
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    if (!image.decoder) return image;
    const deadline = AbortSignal.timeout(timeoutMs);
    const path = join(source.folder, INPUT_FILE);
    const decoded = await decodeBitmap(path, image, AbortSignal.any([signal, deadline])).catch((cause) => {
      if (signal.aborted) throw new ClientDisconnectedError({ cause });
      const limit = { ms: timeoutMs, setting: 'CONVERT_TIMEOUT_MS' } as const;
      if (deadline.aborted) throw serviceErrorFrom(cause, 'CONVERSION_TIMEOUT', source.label, limit);
      throw DISK_ERRORS.includes(cause.code) ? serviceErrorFrom(cause, 'DISK_FULL') : cause;
    });
    return decoded ?? Promise.reject(invalidOutput('a bitmap without pixels', source));
  }

  /** Turns an input that ImageMagick cannot read into a PNG, and inspects that. */
  async function decodeFirst(
    image: ImageInfo,
    source: ConversionInput,
    options: ConvertOptions,
    running: Running,
  ): Promise<ImageInfo> {
    if (image.decoder) return decodeBitmapHere(image, source, running.signal);
    const decoding = decodingOf(image, running.tools);
    if (!decoding) return image;
    await runPlan({ steps: [decoding.step] }, source, options, running);
    const keepsMetadata = !options.stripMetadata;
    return readDecoded(image, source.folder, decoding.output, limits, keepsMetadata).catch((error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutput(`${decoding.output}: ${error.code}`, source)
        : error;
    });
  }

  /** A profile that cannot be used does not spoil the picture: without it, it is shown as if it had none. */
  async function convertOne(
    image: ImageInfo,
    source: ConversionInput,
    options: ConvertOptions,
    signal: AbortSignal,
    tools: ToolContext,
  ): Promise<Omit<ConversionResult, 'queuedMs' | 'convertedMs'>> {
    const deadline = performance.now() + timeoutMs;
    const running: Running = { signal, deadline, tools, movedOut: new Map() };
    const convertWith = async (known: ImageInfo) => {
      const prepared = prepare(known, source, options, tools);
      const printed = { stdout: '', stderr: '' };
      const make = async (planned: Plan, asked: ConvertOptions) => {
        const output = await runPlan(planned, source, asked, running);
        printed.stdout += output.stdout;
        printed.stderr += output.stderr;
        return verifyOutput(source, asked, planned.output);
      };
      const again = (asked: ConvertOptions) => make(planAgain(known, asked, tools), asked);
      const result = await encodeWithin(options, source.label, () => make(prepared, options), again);
      const kept = await keptMetadata(image, result.path, options);
      const lowered = result.quality !== undefined && result.quality < options.quality;
      return { ...result, notes: notesIn(prepared.notes, printed, { kept, lowered }) };
    };
    const readable = await decodeFirst(image, source, options, running);
    const known = await measure(readable, source, options, running);
    return convertWith(known).catch((error) => {
      // Nothing but ImageMagick uses a profile, and what librsvg has read is not in its place any more.
      const usesProfile = image.type !== 'svg';
      if (!usesProfile || !isProfileError(error)) throw explainUnsupportedJpeg(error, known, source);
      return convertWith({ ...known, profile: 'useless' });
    });
  }

  /** Draws an SVG whose header does not tell its size for sure, where the plan depends on that size. */
  async function measure(
    image: ImageInfo,
    source: ConversionInput,
    options: ConvertOptions,
    running: Running,
  ): Promise<ImageInfo> {
    const step = planMeasuring(image, options);
    if (!step) return image;
    const ownSize = {
      ...options,
      format: 'png',
      width: undefined,
      height: undefined,
      fit: undefined,
    } as const;
    await runPlan({ steps: [step] }, source, ownSize, running);
    const { width = 0, height = 0 } = await readDrawn(source, step.rendersTo as string);
    return { ...image, width, height, styled: false };
  }

  /** @param starts is told when its turn has come, and how long it has waited */
  async function convertInTurn(
    source: ConversionInput,
    options: ConvertOptions,
    signal: AbortSignal,
    group: object | undefined,
    starts: (queuedMs: number) => void,
  ): Promise<Omit<ConversionResult, 'convertedMs'>> {
    const path = join(source.folder, INPUT_FILE);
    const image = await inspect(path, await repairInput(path, source.type)).catch((error) => {
      throw error instanceof HeaderTooComplexError
        ? serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', source.label)
        : error;
    });
    const prepared = prepare(image, source, options); // what cannot be converted does not wait for its turn
    const job = { image, options, tools: machine, output: prepared.output };
    const bytes = bytesOnDisk(job, prepared, statSync(path).size) ?? maxFileBytes;
    return pool.run(
      async (queuedMs, idleSlots) => {
        starts(queuedMs);
        // Recorded commands must not depend on the load of the machine.
        const threads = source.onCommand ? 1 : Math.min(1 + idleSlots, maxThreads);
        const tools = { ...machine, threads };
        const result = await inRoom(source, bytes, () => convertOne(image, source, options, signal, tools));
        return { ...result, queuedMs };
      },
      { signal, client: source.client, group },
    );
  }

  return async (source, options, signal, group) => {
    let started = 0;
    let queuedMs: number | undefined;
    const receivedBytes = statSync(join(source.folder, INPUT_FILE)).size;
    const over = (error?: unknown): number => {
      const ranMs = performance.now() - started;
      const { type: input, client } = source;
      const { format: output } = options;
      observe({ input, output, client, error, queuedMs, ranMs: queuedMs === undefined ? undefined : ranMs });
      return ranMs;
    };
    try {
      const result = await convertInTurn(source, options, signal, group, (waited) => {
        queuedMs = waited;
        started = performance.now();
      });
      return { ...result, convertedMs: over() };
    } catch (error) {
      over(error);
      throw error;
    } finally {
      await discardSource(source, receivedBytes);
    }
  };
}

/** Removes a file that is not needed any more, and gives its room back. What cannot be removed goes with the request. */
export async function discardSource({ folder, room }: ConversionInput, bytes: number): Promise<void> {
  rmSync(`${folder}.${INPUT_FILE}`, { force: true }); // where a tool has read it on standard input
  await removeFolder(folder).catch(() => {});
  room?.release(bytes);
}

/** Converts while room for the largest possible result is reserved; then the result takes what it really has. */
async function inRoom<T extends { readonly bytes: number }>(
  { room }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<T>,
): Promise<T> {
  const settle = await room?.reserve(maxBytes);
  let bytes = 0;
  try {
    const result = await convert();
    bytes = result.bytes;
    return result;
  } finally {
    settle?.(bytes);
  }
}
