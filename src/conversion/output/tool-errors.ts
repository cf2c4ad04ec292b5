import { ClientDisconnectedError, ServiceError, serviceErrorFrom, type TimeLimit } from '../../errors.ts';
import { INPUTS, type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { CommandError } from '../../process/command.ts';
import type { ImageInfo, ToolName, UnreadableKind } from '../plan/types.ts';
import { messagesIn, trustedMessagesIn } from './tool-messages.ts';

/** What a failed command means for the person who sent the picture. */

interface ErrorSubject {
  readonly type: InputType;
  readonly label: string;
}

/** ImageMagick's own message that its policy forbids an operation. A colour profile's name is too short to hold it. */
const REFUSED = /^attempt to perform an operation not allowed by the security policy .* @ error\//;

type Meaning = 'time' | 'disk' | 'pixels' | 'side';

interface Sign {
  readonly sign: RegExp;
  readonly meaning: Meaning;
}

/**
 * The messages of ImageMagick that mean something, by their text and the source that prints it, in the order in which
 * they are looked for. Without its `locale.xml` ImageMagick prints the tag of a reason, such as `TimeLimitExceeded`.
 */
const MAGICK_SIGNS: readonly Sign[] = [
  { sign: /^(?:time limit exceeded|TimeLimitExceeded) .* @ (?:error|fatal)\/cache\.c\//, meaning: 'time' },
  { sign: /^unable to write file .* @ error\/constitute\.c\/WriteImage\//, meaning: 'disk' },
  {
    sign: /^unable to open \w+ [`'][^']*': (?:No space left on device|Disk quota exceeded) @ error\/blob\.c\/OpenBlob\//,
    meaning: 'disk',
  },
  // A limit named together with the output is that of its format.
  { sign: /^(?:width or height exceeds limit|WidthOrHeightExceedsLimit) [`']image\./, meaning: 'side' },
  { sign: /^bad dimension .* @ error\/webp\.c\//, meaning: 'side' },
  { sign: /^(?:width or height exceeds limit|WidthOrHeightExceedsLimit) /, meaning: 'pixels' },
  { sign: /^(?:list length exceeds limit|ListLengthExceedsLimit) /, meaning: 'pixels' },
  {
    sign: /^(?:cache resources exhausted|CacheResourcesExhausted) .* @ error\/cache\.c\//,
    meaning: 'pixels',
  },
  { sign: /^Maximum supported image dimension is \d+ pixels .* @ error\/jpeg\.c\//, meaning: 'pixels' },
];

/** The messages of rsvg-convert. It quotes names of a drawing only behind "Error reading SVG", and they have no line breaks. */
const RSVG_SIGNS: readonly Sign[] = [
  { sign: /^Error rendering SVG stdin: Write Error$/m, meaning: 'disk' },
  { sign: /^No Memory$/m, meaning: 'pixels' },
  { sign: /^The resulting image would be larger than \d+ pixels on either dimension\.$/m, meaning: 'pixels' },
];

/** What a failed tool reported; the other tools report nothing that is told apart. */
const MEANINGS: Readonly<Partial<Record<ToolName, (stderr: string) => Meaning | undefined>>> = {
  magick: (stderr) => meaningOf(MAGICK_SIGNS, trustedMessagesIn(stderr)),
  rsvg: (stderr) => meaningOf(RSVG_SIGNS, [stderr]),
};

function meaningOf(signs: readonly Sign[], texts: readonly string[]): Meaning | undefined {
  return signs.find(({ sign }) => texts.some((text) => sign.test(text)))?.meaning;
}

/** How a tool ends that wrote more than a file may have: by SIGXFSZ, or ImageMagick, which exits with its number. */
const isFileTooLarge = ({ signal, exitCode }: CommandError): boolean =>
  signal === 'SIGXFSZ' || exitCode === 25;

const PROFILE_ERROR =
  /^(?:ColorspaceColorProfileMismatch|unable to create color transform|unable to transform colorspace) .* @ (?:warning|error)\/profile\.c\//;

/** Programs of libjxl and libavif abort without a message when they get no more memory. */
const ABORTING_TOOLS: readonly ToolName[] = ['djxl', 'cjxl', 'avifenc'];
const ABORT_SIGNALS: readonly (NodeJS.Signals | undefined)[] = ['SIGABRT', 'SIGILL', 'SIGSEGV'];
/** The same signals, as a shell or bubblewrap passes them on. */
const ABORT_EXIT_CODES: readonly (number | undefined)[] = [134, 132, 139];

const isAbort = ({ signal, exitCode }: CommandError): boolean =>
  ABORT_SIGNALS.includes(signal) || ABORT_EXIT_CODES.includes(exitCode);

/** Turns what {@link CommandError} tells into the error that the client gets. */
export function toServiceError(
  error: unknown,
  tool: ToolName,
  source: ErrorSubject,
  format: OutputType,
  limit: TimeLimit,
): Error {
  if (!(error instanceof CommandError)) return error as Error;
  if (ABORTING_TOOLS.includes(tool) && isAbort(error))
    return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', source.label);
  switch (error.reason) {
    case 'cancelled':
      return new ClientDisconnectedError({ cause: error });
    case 'timeout':
      return serviceErrorFrom(error, 'CONVERSION_TIMEOUT', source.label, limit);
    case 'spawn-failed':
      return serviceErrorFrom(error, isShortage(error.cause) ? 'OVERLOADED' : 'CONVERTER_UNAVAILABLE');
    default:
      return explainEnd(error, tool, source, format, limit);
  }
}

/** No more processes, files or memory for now: errno(3). */
function isShortage(cause: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(
    (cause as NodeJS.ErrnoException | undefined)?.code ?? '',
  );
}

/** Something outside of the service, such as the kernel's out-of-memory killer, ends processes with this signal. */
const KILLED = 'SIGKILL';

function explainEnd(
  error: CommandError,
  tool: ToolName,
  source: ErrorSubject,
  format: OutputType,
  limit: TimeLimit,
): Error {
  const { label, maxDimension: maxSide } = OUTPUTS[format];
  if (isRefused(error.stderr)) return error;
  if (error.signal === KILLED) return serviceErrorFrom(error, 'CONVERTER_UNAVAILABLE');
  const meaning = MEANINGS[tool]?.(error.stderr);
  if (meaning === 'time' || error.signal === 'SIGXCPU') {
    return serviceErrorFrom(error, 'CONVERSION_TIMEOUT', source.label, limit);
  }
  if (isFileTooLarge(error)) return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', source.label);
  if (meaning === 'disk') return serviceErrorFrom(error, 'DISK_FULL');
  if (meaning === 'side' && maxSide)
    return serviceErrorFrom(error, 'OUTPUT_DIMENSION_TOO_LARGE', source.label, label, maxSide);
  if (meaning === 'side' || meaning === 'pixels')
    return serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', source.label);
  return serviceErrorFrom(error, 'CORRUPT_IMAGE', source.label, INPUTS[source.type].label);
}

/**
 * Checks that the policy refused no part of the work, which would leave a wrong picture, whatever the tool's status is.
 *
 * @throws Error when it did
 */
export function assertNotRefused(stderr: string): void {
  if (isRefused(stderr)) throw new Error('the policy refused a part of the conversion');
}

function isRefused(stderr: string): boolean {
  return messagesIn(stderr).some((message) => REFUSED.test(message));
}

/** What looks damaged may only be of a rare kind: that is said instead. */
export function explainUnsupportedJpeg(
  error: Error,
  { unsupportedJpegProcess }: ImageInfo,
  source: ErrorSubject,
): Error {
  if (!unsupportedJpegProcess || !(error instanceof ServiceError) || error.code !== 'CORRUPT_IMAGE')
    return error;
  return serviceErrorFrom(
    error,
    'UNSUPPORTED_ENCODING',
    source.label,
    'lossless, hierarchical or 12-bit JPEG',
  );
}

/** What a file is that its header says cannot be shown right here. */
export const UNREADABLE_KINDS: Readonly<Record<UnreadableKind, string>> = {
  'cmyk-jxl': 'JPEG XL with CMYK colours',
  'psd-without-merged-picture': 'PSD without a merged image, saved without "Maximize Compatibility"',
  'psd-layers': 'PSD with more than 8000 layers',
  'psd-mode': 'PSD with multichannel colours or 32 bits per channel',
};

/** Whether an explained failure may be gone without the picture's profile. */
export function isProfileError({ cause }: Error): boolean {
  return cause instanceof CommandError && hasProfileTrouble(cause.stderr);
}

/** Whether ImageMagick stumbled over the colour profile of a picture that may be sound. */
export function hasProfileTrouble(stderr: string): boolean {
  return trustedMessagesIn(stderr).some((message) => PROFILE_ERROR.test(message));
}

/** The tool said that all went well, and what it left is not a picture. */
export function invalidOutput(finding: string, source: ErrorSubject): ServiceError {
  return serviceErrorFrom(new Error(finding), 'CORRUPT_IMAGE', source.label, INPUTS[source.type].label);
}
