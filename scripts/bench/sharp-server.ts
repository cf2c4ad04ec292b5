/**
 * @module Reference server with Express, multer and sharp, in its simplest form. Configured for
 * throughput as the sharp documentation recommends (performance, concurrency): as many images in
 * parallel as there are processors, one thread each, no cache.
 */
import { availableParallelism } from 'node:os';
import express from 'express';
import multer from 'multer';
import sharp from 'sharp';
import { withSharp } from './settings.ts';

sharp.concurrency(1);
sharp.cache(false);
if (process.env.UV_THREADPOOL_SIZE !== String(availableParallelism()))
  throw new Error('set UV_THREADPOOL_SIZE to the number of processors');

const app = express();
const upload = multer({ storage: multer.memoryStorage(), limits: { fileSize: 10 * 1024 * 1024, files: 1 } });

app.post('/api/v1/convert', upload.single('file'), async (req, res) => {
  const { output_format = 'webp', width } = req.body as Record<string, string>;
  const bytes = await withSharp(
    req.file?.buffer,
    output_format,
    width ? Number(width) : undefined,
  ).toBuffer();
  res.setHeader('Content-Disposition', `attachment; filename="image.${output_format}"`);
  res.type(`image/${output_format === 'jpg' ? 'jpeg' : output_format}`).send(bytes);
});

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as { port: number }).port}`);
});
server.keepAliveTimeout = 65_000; // as imagemill: a client waits until all others have their first response
