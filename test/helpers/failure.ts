import { expect } from 'chai';
import type { CommandError } from '../../src/process/command.ts';

/** What a command fails with; a failure of the test when it succeeds. */
export const failure = (promise: Promise<unknown>): Promise<CommandError> =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error) => error,
  );
