/** @module Handles `Expect: 100-continue`. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Answers `Expect: 100-continue` with 100 when a handler starts to read the body. When the head alone decides, the
 * final status comes instead, as RFC 9110, section 10.1.1 requires. The connection then closes, because the server
 * cannot know whether the body still follows.
 */
export function sendContinueWhenRead(req: IncomingMessage, res: ServerResponse): void {
  const { shouldKeepAlive } = res;
  res.shouldKeepAlive = false;
  req.once('resume', () => {
    if (res.headersSent) return;
    res.shouldKeepAlive = shouldKeepAlive;
    res.writeContinue();
  });
}
