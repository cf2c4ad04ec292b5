/** @module A Redis that sends wrong answers. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type FaultParts, finish, type Outcome, runLoad } from './fault.ts';
import { startServer } from './server.ts';

/** Answers to EVALSHA, which should be the number of requests and the time until the window ends. */
const LIES = [
  '*2\r\n:-5\r\n:-9\r\n',
  '*2\r\n$3\r\nabc\r\n$0\r\n\r\n',
  '*2\r\n:1\r\n:99999999999999\r\n',
  '*1\r\n:1\r\n',
  '*-1\r\n',
  '$-1\r\n',
  '+OK\r\n',
  ':7\r\n',
  '-ERR no\r\n',
  '-NOSCRIPT No matching script\r\n',
  '*2\r\n*0\r\n*0\r\n',
  '*99999999\r\n:1\r\n',
  'HTTP/1.1 200 OK\r\n\r\n',
  '\u0000\u0001\u0002',
  '',
];

/** Counts requests in a Redis that answers at random. */
export async function lyingRedis(parts: FaultParts): Promise<Outcome> {
  let lies = 0;
  const answer = (socket: Socket, command: string): void => {
    if (command.includes('SCRIPT')) socket.write(`$40\r\n${'a'.repeat(40)}\r\n`);
    else if (!command.includes('EVALSHA')) socket.write('+OK\r\n');
    else {
      lies += 1;
      socket.write(parts.random.pick(LIES));
      if (parts.random.next() < 0.02) socket.destroy();
    }
  };
  const redis = createServer((socket) => {
    socket.on('error', () => {}); // the service disconnects after a wrong answer
    socket.on('data', (data) => {
      for (const command of data
        .toString('latin1')
        .split(/^\*\d+\r\n/m)
        .slice(1))
        answer(socket, command);
    });
  });
  redis.listen(0, '127.0.0.1');
  await once(redis, 'listening');
  const url = `redis://127.0.0.1:${(redis.address() as AddressInfo).port}`;
  const server = await startServer({ REDIS_URL: url, RATE_LIMIT_PER_MINUTE: '1000000' });
  const tally = await runLoad(parts, server);
  const outcome = await finish(parts, server, tally);
  redis.close();
  return { ...outcome, figures: `${lies} wrong answers of Redis` };
}
