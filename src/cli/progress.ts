/** @module A progress bar in the last line of a terminal, with the rate and the time left. */
import { sanitizeForDisplay } from '../base/text.ts';

const BAR_WIDTH = 24;
const CLEAR_LINE = '\r\u001b[K';
/** Maximum length of the file name in the bar, in UTF-16 code units. */
const MAX_NAME_LENGTH = 200;
/** Minimum time between two drawings, in ms. */
const DRAW_INTERVAL_MS = 50;
/** Time over which the rate is measured, in ms. */
const RATE_WINDOW_MS = 30_000;
/** Time after which the rate is shown, in ms. */
const MIN_RATE_MS = 1000;

/** Creates a progress bar; undefined if the stream is not a terminal. */
export function createProgress(
  stream: NodeJS.WriteStream = process.stderr,
  now: () => number = () => performance.now(),
) {
  if (!stream.isTTY) return undefined;
  const running = new Set<string>();
  const rate = createRate(now);
  let total: number | undefined;
  let ended = 0;
  let failed = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;

  const draw = (): void => {
    drawnAt = now();
    const [oldest = ''] = running;
    const failures = failed > 0 ? `${failed} failed` : '';
    const parts = [formatCount(ended, total), failures, formatRate(rate.perSecond(), ended, total)];
    const line = [...parts, sanitizeForDisplay(oldest, MAX_NAME_LENGTH)]
      .filter((part) => part !== '')
      .join(' ');
    stream.write(`${CLEAR_LINE}${line.slice(0, (stream.columns || 80) - 1)}`);
  };
  const drawSoon = (): void => {
    if (now() - drawnAt >= DRAW_INTERVAL_MS) draw();
  };
  const end = (input: string): void => {
    running.delete(input);
    ended += 1;
    rate.count();
    drawSoon();
  };
  return {
    /** Sets the number of files, when it is known. */
    setTotal(count: number | undefined): void {
      total = count;
    },
    starts(input: string): void {
      running.add(input);
      drawSoon();
    },
    /** Records the end of a conversion, or of a file that needs none. */
    ended: end,
    /** Records the failure of a file, instead of `ended`. */
    failed(input: string): void {
      failed += 1;
      end(input);
    },
    /** Clears the bar, so that another line can be printed. The next event draws it again. */
    clear(): void {
      stream.write(CLEAR_LINE);
      drawnAt = Number.NEGATIVE_INFINITY;
    },
    /** Draws the bar a last time, and clears it. */
    end(): void {
      draw();
      stream.write(CLEAR_LINE);
    },
  };
}

/** Formats the bar and the number of files. There can be more files than were counted. */
function formatCount(ended: number, counted: number | undefined): string {
  if (counted === undefined) return `${ended} files`;
  const total = Math.max(counted, ended);
  const done = total === 0 ? BAR_WIDTH : Math.round((BAR_WIDTH * ended) / total);
  return `${'█'.repeat(done)}${'░'.repeat(BAR_WIDTH - done)} ${ended}/${total}`;
}

function formatRate(perSecond: number | undefined, ended: number, total: number | undefined): string {
  if (!perSecond) return '';
  const rate = `${perSecond < 9.95 ? perSecond.toFixed(1) : Math.round(perSecond)}/s`;
  if (total === undefined || total <= ended) return rate;
  return `${rate} ${formatDuration((total - ended) / perSecond)} left`;
}

/** Measures how many files end per second, in the last {@link RATE_WINDOW_MS}. */
function createRate(now: () => number) {
  const samples = [{ at: now(), count: 0 }];
  let count = 0;
  return {
    count() {
      count += 1;
      const at = now();
      if (at - (samples.at(-1)?.at ?? 0) < MIN_RATE_MS) return;
      samples.push({ at, count });
      if (at - (samples[0]?.at ?? 0) > RATE_WINDOW_MS) samples.shift();
    },
    perSecond(): number | undefined {
      const [first] = samples;
      const ms = first ? now() - first.at : 0;
      return first && ms >= MIN_RATE_MS ? ((count - first.count) / ms) * 1000 : undefined;
    },
  };
}

/** Formats a duration as h:mm:ss, or m:ss below an hour. */
function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  const rest = [whole / 60, whole].map((part) => String(Math.floor(part) % 60).padStart(2, '0'));
  return `${Math.floor(whole / 3600)}:${rest.join(':')}`.replace(/^0:0?/, '');
}
