import { CommandFailed } from '../engine/command.ts';
import { ClientGone, failBecause, ServiceError } from '../errors.ts';
import { INPUTS, type InputType, OUTPUTS, type OutputType } from '../formats.ts';
import type { Picture } from './plan/types.ts';

/** What a failed command means for the person who sent the picture. */

interface Failing {
  readonly type: InputType;
  readonly label: string;
}

/** As ImageMagick ends a line about what it may not do itself: a picture's own words may stand before that. */
const REFUSED = /not allowed by the security policy.* @ error\S*$/im;

type Meaning = 'ours' | 'disk' | 'pixels' | 'side' | 'time';

/** Signs in what the tools print, looked for in this order. */
const SIGNS: readonly { readonly sign: RegExp; readonly meaning: Meaning }[] = [
  { sign: REFUSED, meaning: 'ours' },
  { sign: /time limit exceeded|TimeLimitExceeded/i, meaning: 'time' },
  {
    sign: /No space left on device|Disk quota exceeded|unable to write file|WriteBlob Failed/i,
    meaning: 'disk',
  },
  // A limit named together with the output is that of its format.
  { sign: /exceeds limit `image\.|BAD_DIMENSION/i, meaning: 'side' },
  {
    sign: /exceeds limit|limit exceeded|cache resources exhausted|maximum supported image dimension/i,
    meaning: 'pixels',
  },
];

/** How a tool ends that wrote more than a file may have: by SIGXFSZ, or ImageMagick, which exits with its number. */
const isFileTooLarge = ({ signal, exitCode }: CommandFailed): boolean =>
  signal === 'SIGXFSZ' || exitCode === 25;

/** Signs that a tool stumbled over the colour profile of a picture that may be sound. */
export const PROFILE_TROUBLE = /ColorProfile|color transform|unable to transform colorspace/i;

/** Turns what {@link CommandFailed} tells into the error that the client gets. */
export function explain(error: unknown, source: Failing, format: OutputType, timeoutMs: number): Error {
  if (!(error instanceof CommandFailed)) return error as Error;
  switch (error.reason) {
    case 'cancelled':
      return new ClientGone({ cause: error });
    case 'timeout':
      return failBecause(error, 'CONVERSION_TIMEOUT', source.label, timeoutMs);
    case 'unrunnable':
      return failBecause(error, isShortage(error.cause) ? 'BUSY' : 'TOOLS_FAILING');
    default:
      return explainText(error, source, format, timeoutMs);
  }
}

/** No more processes, files or memory for now: errno(3). */
function isShortage(cause: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(
    (cause as NodeJS.ErrnoException | undefined)?.code ?? '',
  );
}

function explainText(error: CommandFailed, source: Failing, format: OutputType, timeoutMs: number): Error {
  const meaning = SIGNS.find(({ sign }) => sign.test(error.stderr))?.meaning;
  const { label, maxSide } = OUTPUTS[format];
  if (meaning === 'ours') return error;
  if (meaning === 'time' || error.signal === 'SIGXCPU') {
    return failBecause(error, 'CONVERSION_TIMEOUT', source.label, timeoutMs);
  }
  if (isFileTooLarge(error)) return failBecause(error, 'TOO_LARGE', source.label);
  if (meaning === 'disk') return failBecause(error, 'DISK_FULL');
  if (meaning === 'side' && maxSide) return failBecause(error, 'SIDE_TOO_LONG', source.label, label, maxSide);
  if (meaning === 'side' || meaning === 'pixels') return failBecause(error, 'TOO_LARGE', source.label);
  return failBecause(error, 'DAMAGED', source.label, INPUTS[source.type].label);
}

/** A part of the work that the policy refused leaves a wrong picture, whatever the tool says at its end. */
export function checkObeyed(printed: string): void {
  if (REFUSED.test(printed)) throw new Error(`refused in part: ${printed}`);
}

/** What looks damaged may only be of a rare kind: that is said instead. */
export function explainKind(error: Error, { rareCoding }: Picture, source: Failing): Error {
  if (!rareCoding || !(error instanceof ServiceError) || error.code !== 'DAMAGED') return error;
  return failBecause(error, 'KIND_UNREADABLE', source.label, 'a lossless, hierarchical or 12-bit JPEG');
}

/** Whether an explained failure may be gone without the picture's profile. */
export function isProfileTrouble({ cause }: Error): boolean {
  return cause instanceof CommandFailed && PROFILE_TROUBLE.test(cause.stderr);
}

/** The tool said that all went well, and what it left is not a picture. */
export function badResult(finding: string, source: Failing): ServiceError {
  return failBecause(new Error(finding), 'DAMAGED', source.label, INPUTS[source.type].label);
}
