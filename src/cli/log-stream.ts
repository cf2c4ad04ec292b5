import { writeSync } from 'node:fs';

/**
 * @module Where the service's log goes: standard output, written line by line and without a buffer.
 *
 * pino's own destination ends the process when a line cannot be written, and its exit hook retries for ever. Here
 * such a line is dropped: a full disk (ENOSPC), a file at its largest size (EFBIG), a reader that is gone (EPIPE) or
 * does not keep up (EAGAIN) must not stop the service.
 */
export interface LogStream {
  /** Writes a line, which has its line break, or drops it. */
  write(line: string): void;
  /** How many lines were dropped, or cut short, so far. */
  readonly dropped: number;
}

const LINE_BREAK = 0x0a;

/** @param fd the open file that is written to */
export function createLogStream(fd: number): LogStream {
  let dropped = 0;
  let isCutShort = false;
  return {
    write(line) {
      // What a full disk took of a line stays there: the next line is not to be read as its end.
      const bytes = Buffer.from(isCutShort ? `\n${line}` : line);
      let written = 0;
      try {
        while (written < bytes.length) written += writeSync(fd, bytes, written);
      } catch {
        dropped += 1;
      }
      if (written > 0) isCutShort = bytes[written - 1] !== LINE_BREAK;
    },
    get dropped() {
      return dropped;
    },
  };
}
