/** @module The sizes of a watermark, and its conversion to PNG at the size for each picture. */
import { constants } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { workFiles } from '../../files/workspace.ts';
import type { Size } from '../../images/image-info.ts';
import { MAX_WATERMARK } from '../../tables/formats.ts';
import { planResult } from '../admit.ts';
import type { ConversionInput, RunningConversion, WatermarkFile } from '../context.ts';
import { inspectInput, ownInput } from '../input/inspect.ts';
import { assertPixels, assertSize, WATERMARK_LABEL } from '../input/watermark-image.ts';
import { sumDiskBytes } from '../limits/disk-bytes.ts';
import { checkResult, inspectResult } from '../output/result.ts';
import { invalidOutputError } from '../output/tool-errors.ts';
import { nameFile } from '../plan/step.ts';
import { type ConversionJob, type ConvertOptions, INPUT_FILE, type WatermarkPlace } from '../plan/types.ts';
import { type WatermarkBox, watermarkBoxes, watermarkFile } from '../plan/watermark.ts';
import { moveOut, runSteps, withRepair } from '../steps/run-steps.ts';
import { DECODED } from './decode-first.ts';

/**
 * Makes the watermark of a result, at the size for each frame or page, in the folder of the
 * picture. The time limit is that of the picture.
 *
 * @returns the sizes of the watermarks, in the order of `watermarkBoxes`
 * @throws {ServiceError} that names the watermark
 */
export async function makeWatermarks(job: ConversionJob, running: RunningConversion): Promise<Size[]> {
  const sizes: Size[] = [];
  const boxes = watermarkBoxes(job);
  if (boxes.length === 0) throw invalidOutputError('a picture without a size', running.source);
  for (const [at, box] of boxes.entries()) {
    const target = join(running.source.folder, nameFile(watermarkFile(at), job.suffix));
    const make = (box: WatermarkBox) => makeWatermark(box, target, running);
    sizes.push(await makeInBox(box, job.options.watermark?.place, make));
  }
  return sizes;
}

/** Makes a watermark for a box: at its own size if it fits and must not be enlarged. */
async function makeInBox(
  box: WatermarkBox,
  place: WatermarkPlace | undefined,
  make: (box: WatermarkBox) => Promise<Size>,
): Promise<Size> {
  if (box.enlarge) return make(box);
  const { width = Number.POSITIVE_INFINITY } = box;
  // A text of 1000 points at 1200 dpi takes 10 s at its own size. In the box, it is seen to be
  // smaller than that.
  if (place && 'minWidth' in place && Math.max(place.minWidth, place.height) > width) {
    const fitted = await make(box);
    if (fitted.height < place.height) return fitted;
  }
  // A drawing fills a box. So whether its own size fits has to be tried first.
  const own = await make({ enlarge: false });
  return own.width <= width ? own : make(box);
}

/** The image is converted in its own folder, which is removed. A repair changes a copy of it. */
async function makeWatermark(box: WatermarkBox, target: string, picture: RunningConversion): Promise<Size> {
  const { client, folder: pictureFolder, watermark } = picture.source;
  const { path, type, sha256 } = watermark as WatermarkFile;
  const folder = `${pictureFolder}.watermark`;
  const files = workFiles(folder);
  await files.mkdir(folder, { mode: 0o700 });
  await copyFile(path, join(folder, INPUT_FILE), constants.COPYFILE_FICLONE);
  const source: ConversionInput = { folder, type, sha256, label: WATERMARK_LABEL, client };
  await using own = ownInput(source, MAX_WATERMARK.bytes);
  const options: ConvertOptions = {
    format: 'png',
    quality: 100,
    metadata: 'none',
    frames: 'first',
    pages: 'first',
    ...box,
  };
  const image = await inspectInput(source, [options], own.repairs, picture);
  assertPixels(image);
  const planned = planResult(image, options, '', { ...picture, source });
  if (!box.enlarge) for (const { result } of planned.fittings) assertSize(result);
  const maxBytes = sumDiskBytes([planned], own.bytes, picture.config).folder;
  const running = { ...picture, source, repairs: own.repairs, maxBytes };
  if (type === 'svg') await moveOut(folder);
  const decoding = DECODED.plan(planned);
  const decoded = decoding && { image: await DECODED.find(decoding, running, [planned]) };
  const job = decoded ? planResult(image, options, '', running, decoded) : planned;
  const made = await withRepair(job, running, async (repaired) => {
    const { stdout } = await runSteps(repaired.plan.steps, repaired, running);
    return checkResult(source, repaired, stdout);
  });
  const { width = 1, height = 1 } = (await inspectResult(made.path, 'png')) ?? {};
  await files.rename(made.path, target);
  return { width, height };
}
