/** @module Formats lines of the log for people at a terminal. */
import { sanitizeForDisplay } from '../text.ts';

/** Fields of a line that pino wrote. */
interface LogLine {
  /** 30 info, 40 warn, 50 error, 60 fatal: https://getpino.io/#/docs/api?id=loggerlevels-object */
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string };
  readonly [field: string]: unknown;
}

/** Sentences for messages that have another meaning, or more of it, for people. */
const SENTENCES: Readonly<Record<string, (line: LogLine) => string>> = {
  startup: ({ version, magick }) => `imagemill ${version}, ImageMagick ${magick}`,
  listening: ({ url }) => `Open ${url} in a browser. To stop the server, press Ctrl-C.`,
  'request completed': ({ time, method, route, status, outcome, ms }) => {
    const at = new Date(time).toLocaleTimeString('sv'); // the Swedish format is HH:MM:SS
    return `${at} ${method} ${route} ${status}${outcome === 'OK' ? '' : ` ${outcome}`} ${ms} ms`;
  },
  'shutting down': () =>
    'Stopping when all requests are answered. To close their connections at once, press Ctrl-C again.',
  'shutdown complete': () => 'Stopped.',
};

const FATAL = 60;
/** Starts of lines by level. */
const PREFIXES: Readonly<Record<number, string>> = { 40: 'Warning: ', 50: 'Error: ', [FATAL]: 'imagemill: ' };

/** Maximum length of a line in UTF-16 code units. */
const MAX_LINE_LENGTH = 2000;

/** Formats a line of JSON. */
export function formatForPeople(json: string): string {
  const line = JSON.parse(json) as LogLine;
  const { level, msg = '', err } = line;
  const cause = err?.message === undefined ? '' : `: ${err.message}`;
  const sentence = SENTENCES[msg.startsWith('listening on') ? 'listening' : msg]?.(line) ?? msg;
  const text = `${PREFIXES[level] ?? ''}${sentence}${cause}`;
  return `${sanitizeForDisplay(text, MAX_LINE_LENGTH)}\n`;
}
