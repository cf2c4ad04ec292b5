/** The machine cannot do what the service needs; the message says what and why. */
export class StartupError extends Error {
  override readonly name = 'Unusable';
}
