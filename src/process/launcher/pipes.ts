import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';

/**
 * @module The named pipes that connect a program with the server. execa cannot do this, since the launcher starts the
 * program: the launcher opens one end by its path, the server the other.
 */

export interface PipePaths {
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Pipes {
  /** Only there when the server writes to the program. */
  readonly stdin: Socket | undefined;
  readonly stdout: Socket;
  readonly stderr: Socket;
}

export const pipePaths = (folder: string): PipePaths => ({
  stdin: join(folder, 'in'),
  stdout: join(folder, 'out'),
  stderr: join(folder, 'err'),
});

/**
 * Opens the server's ends anew for each program, so that nothing of one program is left for the next.
 *
 * @throws Error with the code of open(2)
 */
export function openPipes(paths: PipePaths, writesStdin: boolean): Pipes {
  const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants;
  const opened: Socket[] = [];
  const open = (path: string, flags: number, direction: 'readable' | 'writable'): Socket => {
    const directions = { readable: false, writable: false, [direction]: true };
    const socket = new Socket({ fd: openSync(path, flags | O_NONBLOCK), ...directions });
    opened.push(socket);
    return socket;
  };
  try {
    return {
      stdout: open(paths.stdout, O_RDONLY, 'readable'),
      stderr: open(paths.stderr, O_RDONLY, 'readable'),
      // O_RDWR, since the program has not opened its end yet. The program reads to the end when this socket is closed.
      stdin: writesStdin ? open(paths.stdin, O_RDWR, 'writable') : undefined,
    };
  } catch (error) {
    for (const socket of opened) socket.destroy();
    throw error;
  }
}

export const socketsOf = ({ stdin, stdout, stderr }: Pipes): Socket[] =>
  stdin ? [stdin, stdout, stderr] : [stdout, stderr];
