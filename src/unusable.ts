/** The machine cannot do what the service needs; the message says what and why. */
export class Unusable extends Error {
  override readonly name = 'Unusable';
}
