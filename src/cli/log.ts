import { type Logger, pino } from 'pino';

/** What the mill logs, for people: sentences instead of JSON. */

export interface WarningCollector {
  readonly log: Logger;
  /** What it warned of so far, each once. */
  readonly warnings: ReadonlySet<string>;
}

/** Nothing is printed: whoever runs the command knows which of it matters. */
export function createWarningCollector(): WarningCollector {
  const warnings = new Set<string>();
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void warnings.add((JSON.parse(line) as { msg: string }).msg) },
  );
  return { log, warnings };
}
