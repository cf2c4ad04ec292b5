/**
 * @module Reference server with Express, multer and sharp, in its simplest form. Configured for throughput as the
 * sharp documentation recommends (performance, concurrency): as many images in parallel as there are processors, one
 * thread each, no cache.
 */
import { availableParallelism } from 'node:os';
import express from 'express';
import multer from 'multer';
import sharp, { type FormatEnum } from 'sharp';
import { SHARP_OPTIONS } from './settings.ts';

sharp.concurrency(1);
sharp.cache(false);
if (process.env.UV_THREADPOOL_SIZE !== String(availableParallelism()))
  throw new Error('set UV_THREADPOOL_SIZE to the number of processors');

const app = express();
const upload = multer({ storage: multer.memoryStorage(), limits: { fileSize: 10 * 1024 * 1024, files: 1 } });

app.post('/api/v1/convert', upload.single('file'), async (req, res) => {
  const { output_format = 'webp', width } = req.body as Record<string, string>;
  const animated = output_format === 'webp' || output_format === 'gif';
  let image = sharp(req.file?.buffer, { animated }).autoOrient();
  if (width)
    image = image.resize({
      width: Number(width),
      height: Number(width),
      fit: 'inside',
      withoutEnlargement: true,
    });
  if (output_format === 'jpg') image = image.flatten({ background: '#fff' });
  const format = (output_format === 'jpg' ? 'jpeg' : output_format) as keyof FormatEnum;
  const bytes = await image.toFormat(format, SHARP_OPTIONS[output_format]).toBuffer();
  res.setHeader('Content-Disposition', `attachment; filename="image.${output_format}"`);
  res.type(`image/${format}`).send(bytes);
});

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as { port: number }).port}`);
});
server.keepAliveTimeout = 65_000; // as imagemill: a client waits until all others have their first response
