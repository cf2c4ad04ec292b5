/** @module The size of an SVG whose header does not state it reliably. */
import type { ImageInfo } from '../../images/image-info.ts';
import { assertNotDenied } from '../output/tool-errors.ts';
import { needsOwnSize, renderOwnSize } from '../plan/rasterize.ts';
import { RASTERIZED_FILE } from '../plan/types.ts';
import { inspectRendered, runStep } from '../steps/run-steps.ts';
import type { Measurement } from './measurement.ts';

/** Renders the SVG. Its size is that of the PNG. */
export const DRAWN: Measurement<ImageInfo> = {
  isOfResult: false,
  plan(job) {
    const { image, options } = job;
    const isKnown = image.type !== 'svg' || (image.width && !image.styled);
    if (isKnown || !(needsOwnSize(options) || options.watermark)) return undefined;
    return { ...job, plan: { steps: [renderOwnSize(image)], notes: [] } };
  },
  async find(measuring, running) {
    for (const step of measuring.plan.steps)
      assertNotDenied((await runStep(step, measuring, running)).stderr);
    return inspectRendered(running.source, RASTERIZED_FILE);
  },
  read: ({ width = 0, height = 0 }, { image }) => ({ image: { ...image, width, height, styled: false } }),
};
