/** @module A progress bar in the last line of a terminal. */
import { sanitizeForDisplay } from '../../text.ts';

/** A progress bar. */
export interface Progress {
  /** Records the start of a conversion. */
  starts(input: string): void;
  /** Records the end of a conversion. */
  ended(input: string): void;
  /** Clears the bar, so that another line can be printed. The next event draws it again. */
  clear(): void;
}

const BAR_WIDTH = 24;
const CLEAR_LINE = '\r\u001b[K';

/**
 * Creates a progress bar.
 *
 * @param total number of conversions
 * @returns undefined if the stream is not a terminal
 */
export function createProgress(
  total: number,
  stream: NodeJS.WriteStream = process.stderr,
): Progress | undefined {
  if (!stream.isTTY) return undefined;
  const running = new Set<string>();
  let ended = 0;
  const draw = (): void => {
    const done = Math.round((BAR_WIDTH * ended) / total);
    const bar = '█'.repeat(done) + '░'.repeat(BAR_WIDTH - done);
    const [oldest = ''] = running;
    const line = `${bar} ${ended}/${total} ${sanitizeForDisplay(oldest, MAX_NAME_LENGTH)}`;
    stream.write(`${CLEAR_LINE}${line.slice(0, (stream.columns || 80) - 1)}`);
  };
  return {
    starts(input) {
      running.add(input);
      draw();
    },
    ended(input) {
      running.delete(input);
      ended += 1;
      draw();
    },
    clear: () => void stream.write(CLEAR_LINE),
  };
}

/** Maximum length of the file name in the bar, in UTF-16 code units. */
const MAX_NAME_LENGTH = 200;
