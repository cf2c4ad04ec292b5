/** What a command is given besides its arguments. */
export interface CliContext {
  /** The environment: the settings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** Ends the program with a sentence for whoever typed the command. */
export class CliError extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  /** @param status the exit status */
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}
