/** @module Yields to the event loop during long work on the content of a file. */
import { setImmediate } from 'node:timers/promises';

/** Time after which all work together yields to the event loop, in ms. */
const TURN_MS = 5;
let turnStarted = 0;
let nextTurn: Promise<void> | undefined;

/** Returns whether work must wait for the next turn of the event loop, because the last wait was too long ago. */
export function isTurnOver(): boolean {
  return performance.now() - turnStarted > TURN_MS;
}

/** Waits for the next turn of the event loop. */
export function waitForTurn(): Promise<void> {
  nextTurn ??= setImmediate().then(() => {
    nextTurn = undefined;
    turnStarted = performance.now();
  });
  return nextTurn;
}
