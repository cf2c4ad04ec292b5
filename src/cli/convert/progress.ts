import { sanitizeForDisplay } from '../../text.ts';

/** One line at the bottom of a terminal, which is gone when all is done. */

export interface Progress {
  starts(input: string): void;
  ended(input: string): void;
  /** Takes the line away, so that another can be printed; the next event brings it back. */
  clear(): void;
}

const BAR_WIDTH = 24;
const START_OF_EMPTY_LINE = '\r\u001b[K';

/** @returns undefined when standard error is no terminal: files want no bar */
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
    const line = `${bar} ${ended}/${total} ${sanitizeForDisplay(oldest, MAX_WIDTH)}`;
    stream.write(`${START_OF_EMPTY_LINE}${line.slice(0, (stream.columns || 80) - 1)}`);
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
    clear: () => void stream.write(START_OF_EMPTY_LINE),
  };
}

const MAX_WIDTH = 200;
