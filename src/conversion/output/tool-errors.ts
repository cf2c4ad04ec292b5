/** @module Parses messages of tools, and translates their failures into errors for the client. */
import { isNearlyFull } from '../../files/workspace.ts';
import type { KindRow } from '../../images/kinds.ts';
import { CommandError } from '../../process/command.ts';
import {
  ClientDisconnectedError,
  ServiceError,
  serviceErrorFrom,
  type TimeLimit,
} from '../../tables/errors.ts';
import { INPUTS, OUTPUTS, type OutputType } from '../../tables/formats.ts';
import type { ToolName } from '../../tables/tools.ts';
import type { ConversionInput } from '../context.ts';

type ErrorSubject = Pick<ConversionInput, 'type' | 'label'>;

/** Message that the policy forbids an operation. A name of a profile is too short to imitate it. */
const DENIED = /^attempt to perform an operation not allowed by the security policy .* @ error\//;

type Limit = 'time' | 'disk' | 'pixels' | 'side';

/**
 * Messages of the tools about an exceeded limit; the first limit with a match counts. The messages
 * of other tools are not parsed.
 *
 * Those of ImageMagick are identified by text and source file. Without its `locale.xml`, it prints
 * the tag of a reason, such as `TimeLimitExceeded`. rsvg-convert quotes names from an SVG only
 * after "Error reading SVG", and without line breaks.
 */
const LIMIT_MESSAGES: Readonly<Partial<Record<ToolName, Partial<Record<Limit, readonly RegExp[]>>>>> = {
  magick: {
    time: [/^(?:time limit exceeded|TimeLimitExceeded) .* @ (?:error|fatal)\/cache\.c\//],
    disk: [
      /^unable to write file .* @ error\/constitute\.c\/WriteImage\//,
      /^unable to open \w+ [`'][^']*': (?:No space left on device|Disk quota exceeded) @ error\/blob\.c\/OpenBlob\//,
    ],
    side: [
      // A message that names the output is about the limit of its format.
      /^(?:width or height exceeds limit|WidthOrHeightExceedsLimit) [`']image\./,
      /^bad dimension .* @ error\/webp\.c\//,
    ],
    pixels: [
      /^(?:width or height exceeds limit|WidthOrHeightExceedsLimit) /,
      /^(?:list length exceeds limit|ListLengthExceedsLimit) /,
      /^(?:cache resources exhausted|CacheResourcesExhausted) .* @ error\/cache\.c\//,
      /^Maximum supported image dimension is \d+ pixels .* @ error\/jpeg\.c\//,
    ],
  },
  rsvg: {
    disk: [/^Error rendering SVG stdin: Write Error$/m],
    // Of rsvg-convert, librsvg, Rust and GLib. The last two abort.
    pixels: [
      /^No Memory$/m,
      /^Error rendering SVG stdin: rendering error: NoMemory$/m,
      /^memory allocation of \d+ bytes failed$/m,
      /: failed to allocate \d+ bytes$/m,
    ],
  },
  dwebp: { disk: [/^Error writing file /] },
  pngquant: {
    disk: [/^ *error: failed writing image to stdout /m],
    pixels: [/unable to allocate image data$/m],
  },
  img2webp: { side: [/^Invalid \d+x\d+ dimension for PNM$/m] },
};

/** Message of rsvg-convert about an SVG whose size only librsvg can calculate. */
const DRAWING_LIMIT = /^The resulting image would be larger than (\d+) pixels on either dimension\.$/m;

function exceededLimit(tool: ToolName, { stderr, signal }: CommandError): Limit | undefined {
  // It prints a message for every failure but that of writing. A crash has no message, either.
  if (tool === 'img2webp' && stderr === '' && signal === undefined) return 'disk';
  const texts = tool === 'magick' ? trustedMessagesIn(stderr) : [stderr];
  const found = Object.entries(LIMIT_MESSAGES[tool] ?? {}).find(([, patterns]) =>
    patterns.some((pattern) => texts.some((text) => pattern.test(text))),
  );
  return found?.[0] as Limit | undefined;
}

/** How a tool exits at RLIMIT_FSIZE: by SIGXFSZ, or ImageMagick with the number of that signal. */
const isFileTooLarge = (tool: ToolName, { signal, exitCode }: CommandError): boolean =>
  signal === 'SIGXFSZ' || (tool === 'magick' && exitCode === 25);

/** Warnings about a JPEG that ends early, or damaged fax lines of a TIFF, which become white. */
const TRUNCATED = [
  /^(?:Premature end of JPEG file|Corrupt JPEG data: (?:premature|bad Huffman)) .* @ warning\/jpeg\.c\//,
  /^(?:Premature EO[FL]|Line length mismatch|Bad code word) at .*Fax\d?Decode.* @ warning\/tiff\.c\//,
];

/** ImageMagick's messages about a colour profile. The image itself can be valid. */
const PROFILE_ERROR =
  /^(?:ColorspaceColorProfileMismatch|unable to create color transform|unable to transform colorspace) .* @ (?:warning|error)\/profile\.c\//;

const PALETTE_ERROR = /^invalid colormap index .* @ error\/colormap-private\.h\//i;

/** Tools of libjxl, libavif and poppler, which abort without a message when memory runs out. */
const ABORTING_TOOLS: readonly ToolName[] = ['djxl', 'cjxl', 'avifenc', 'pdfinfo', 'pdftocairo'];

/** Messages of pdfinfo about a PDF that needs a password, or is encrypted in another way. */
const ENCRYPTED = /Incorrect password|security handler/;
const ABORT_SIGNALS: readonly (NodeJS.Signals | undefined)[] = ['SIGABRT', 'SIGILL', 'SIGSEGV'];

/** Errors of a machine that has no more processes, files or memory at the moment; see errno(3). */
const SHORTAGES = ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'];

/** Signal of the kernel's out-of-memory killer and of other programs that kill processes. */
const KILLED = 'SIGKILL';

/**
 * Translates a failure into the error for the client. Returns others than {@link CommandError}
 * unchanged. The format can limit the size; a tool without one writes no result.
 */
export function translateToolError(
  error: unknown,
  tool: ToolName,
  source: ErrorSubject,
  limit: TimeLimit,
  format?: OutputType,
): Error {
  if (!(error instanceof CommandError)) return error as Error;
  const { label, type } = source;
  const isOutOfMemory = ABORTING_TOOLS.includes(tool) && ABORT_SIGNALS.includes(error.signal);
  if (isOutOfMemory || error.reason === 'files')
    return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label);
  if (error.reason === 'cancelled') return new ClientDisconnectedError({ cause: error });
  if (error.reason === 'timeout') return serviceErrorFrom(error, 'CONVERSION_TIMEOUT', label, limit);
  if (error.reason === 'spawn-failed') {
    const { code = '' } = (error.cause ?? {}) as NodeJS.ErrnoException;
    return serviceErrorFrom(error, SHORTAGES.includes(code) ? 'OVERLOADED' : 'CONVERTER_UNAVAILABLE');
  }
  if (isDenied(error.stderr)) return error;
  if (error.signal === KILLED) return serviceErrorFrom(error, 'CONVERTER_UNAVAILABLE');
  if (tool === 'pdfinfo' && ENCRYPTED.test(error.stderr))
    return serviceErrorFrom(error, 'FILE_ENCRYPTED', label);
  const maxDrawnSide = tool === 'rsvg' && DRAWING_LIMIT.exec(error.stderr)?.[1];
  if (maxDrawnSide)
    return serviceErrorFrom(error, 'DRAWING_TOO_LARGE', label, undefined, Number(maxDrawnSide));
  const exceeded = exceededLimit(tool, error);
  if (exceeded === 'time' || error.signal === 'SIGXCPU')
    return serviceErrorFrom(error, 'CONVERSION_TIMEOUT', label, limit);
  if (isFileTooLarge(tool, error)) return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label);
  if (exceeded === 'disk') return serviceErrorFrom(error, 'DISK_FULL');
  const output = format && OUTPUTS[format];
  if (exceeded === 'side' && output?.maxDimension)
    return serviceErrorFrom(error, 'OUTPUT_DIMENSION_TOO_LARGE', label, output.label, output.maxDimension);
  if (exceeded) return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label);
  return serviceErrorFrom(error, 'CORRUPT_IMAGE', label, INPUTS[type].label);
}

/** @throws {Error} if the policy has forbidden a part, although the tool can report success */
export function assertNotDenied(stderr: string): void {
  if (isDenied(stderr)) throw new Error('the policy denied a part of the conversion');
}

function isDenied(stderr: string): boolean {
  return messagesIn(stderr).some((message) => DENIED.test(message));
}

/** Returns `UNSUPPORTED_ENCODING` for `CORRUPT_IMAGE` if libraries do not decode a kind of file. */
export function explainFailure(error: Error, kinds: readonly KindRow[], source: ErrorSubject): Error {
  const kind = kinds.find(({ refused }) => refused === 'on failure');
  if (!kind || !(error instanceof ServiceError) || error.code !== 'CORRUPT_IMAGE') return error;
  return serviceErrorFrom(error, 'UNSUPPORTED_ENCODING', source.label, kind.label);
}

/**
 * Returns `DISK_FULL` instead of `CORRUPT_IMAGE` if the disk of a working folder is full: tools
 * that cannot write report it in many ways, or write a part of a file and report success. Returns
 * other errors unchanged.
 */
export async function explainByDisk(
  error: Error,
  { folder }: Pick<ConversionInput, 'folder'>,
): Promise<Error> {
  if (!(error instanceof ServiceError) || error.code !== 'CORRUPT_IMAGE') return error;
  return (await isNearlyFull(folder)) ? serviceErrorFrom(error.cause, 'DISK_FULL') : error;
}

/** Returns whether a conversion failed because of the colour profile, and may succeed without. */
export function isProfileError({ cause }: Error): boolean {
  return cause instanceof CommandError && warningsIn(cause.stderr).hasProfileError;
}

/** Returns whether a conversion failed because a pixel has an index without a colour. */
export function isPaletteError({ cause }: Error): boolean {
  return (
    cause instanceof CommandError && trustedMessagesIn(cause.stderr).some((one) => PALETTE_ERROR.test(one))
  );
}

/** Returns what ImageMagick says about an image that it could convert, or without its profile. */
export function warningsIn(stderr: string): {
  readonly isTruncated: boolean;
  readonly hasProfileError: boolean;
} {
  const messages = trustedMessagesIn(stderr);
  return {
    isTruncated: messages.some((message) => TRUNCATED.some((pattern) => pattern.test(message))),
    hasProfileError: messages.some((message) => PROFILE_ERROR.test(message)),
  };
}

/** Creates the error of a tool that succeeded without a valid image. `finding` is for the log. */
export function invalidOutputError(finding: string, source: ErrorSubject): ServiceError {
  return serviceErrorFrom(new Error(finding), 'CORRUPT_IMAGE', source.label, INPUTS[source.type].label);
}

/**
 * A message on standard error. ImageMagick 6 and 7 print
 * `program: reason 'object' @ severity/source.c/Function/line.` and quote names from the input,
 * such as the name of a colour profile. A name can have line breaks, so it can contain a whole
 * message.
 */
const MESSAGE = /^[\w.-]+: (.+ @ (?:warning|error|fatal)\/[\w-]+\.[ch]\/\w+\/\d+\.)$/;

/** Returns the lines that look like messages, without the name of the program. */
function messagesIn(stderr: string): string[] {
  return stderr.split('\n').flatMap((line) => MESSAGE.exec(line)?.[1] ?? []);
}

/**
 * Returns the messages, or none if any line is not a message: a quoted name with line breaks leaves
 * such a line. libpng quotes at most 78 bytes of a name, too few for a complete message that hides
 * the other lines.
 */
function trustedMessagesIn(stderr: string): string[] {
  const messages = messagesIn(stderr);
  const lines = stderr.split('\n').filter((line) => line !== '');
  return messages.length === lines.length ? messages : [];
}

/** Errors of open(2) and read(2) if the path is missing or a link, pipe, socket or folder. */
const NO_FILE = ['ENOENT', 'ELOOP', 'ESPIPE', 'ENXIO', 'EISDIR'];

/** Returns whether an error means that a tool has not written the expected file. */
export function isNoFile(error: unknown): boolean {
  return NO_FILE.includes((error as NodeJS.ErrnoException).code ?? '');
}
