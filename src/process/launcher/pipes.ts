/**
 * @module The named pipes that connect a program with the server. The launcher opens one end by its path, the server the
 * other. execa cannot create them, because the launcher, not the server, starts the program.
 */

import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';

/** Paths of the named pipes of a launcher. */
export interface PipePaths {
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** The server's ends of the pipes. */
export interface Pipes {
  /** Set only when the server writes to the program. */
  readonly stdin: Socket | undefined;
  readonly stdout: Socket;
  readonly stderr: Socket;
}

/** Returns the paths of the pipes in the folder of a launcher. */
export const pipePaths = (folder: string): PipePaths => ({
  stdin: join(folder, 'in'),
  stdout: join(folder, 'out'),
  stderr: join(folder, 'err'),
});

/**
 * Opens the server's ends for one program, so that no data of a program reaches the next one.
 *
 * @throws {Error} with the code of open(2)
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
      // O_RDWR, because the program has not opened its end yet. The program reads EOF when this socket is closed.
      stdin: writesStdin ? open(paths.stdin, O_RDWR, 'writable') : undefined,
    };
  } catch (error) {
    for (const socket of opened) socket.destroy();
    throw error;
  }
}

/** Returns the open sockets of the pipes. */
export const socketsOf = ({ stdin, stdout, stderr }: Pipes): Socket[] =>
  stdin ? [stdin, stdout, stderr] : [stdout, stderr];
