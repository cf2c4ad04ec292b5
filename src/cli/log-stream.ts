/**
 * @module Writes the service's log to a file descriptor, line by line and without a buffer.
 *
 * pino's own destination ends the process when a line cannot be written, and its exit hook retries forever. This
 * stream drops the line instead: a full disk (ENOSPC), a file at its maximum size (EFBIG), and a reader that has
 * exited (EPIPE) or is too slow (EAGAIN) must not stop the service.
 */
import { writeSync } from 'node:fs';

/** A destination for pino. */
export interface LogStream {
  /** Writes a line including its line break, or drops it. */
  write(line: string): void;
  /** Number of lines dropped or truncated since the start. */
  readonly dropped: number;
}

const LINE_BREAK = 0x0a;

/**
 * Creates a log stream.
 *
 * @param fd file descriptor to write to
 */
export function createLogStream(fd: number): LogStream {
  let dropped = 0;
  let isTruncated = false;
  return {
    write(line) {
      // A full disk may have stored the start of a line. A line break separates it from the next line.
      const bytes = Buffer.from(isTruncated ? `\n${line}` : line);
      let written = 0;
      try {
        while (written < bytes.length) written += writeSync(fd, bytes, written);
      } catch {
        dropped += 1;
      }
      if (written > 0) isTruncated = bytes[written - 1] !== LINE_BREAK;
    },
    get dropped() {
      return dropped;
    },
  };
}
