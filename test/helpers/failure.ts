/** @module Expects a command to fail. */
import { expect } from 'chai';
import type { CommandError } from '../../src/process/command.ts';

/** Returns the error of a command. Fails the test if the command succeeds. */
export const failure = (promise: Promise<unknown>): Promise<CommandError> =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error) => error,
  );
