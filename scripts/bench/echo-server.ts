/**
 * @module Echo server: reads the request body and sends it back. The lower bound for any service
 * that takes uploads.
 */
import { createServer } from 'node:http';

const server = createServer(async (req, res) => {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  res.end(Buffer.concat(chunks));
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as { port: number }).port}`);
});
server.keepAliveTimeout = 65_000; // as imagemill
