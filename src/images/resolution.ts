/** @module The resolution that a file states, in pixels per inch. */
import type { ImageFacts } from './image-info.ts';

/** Range of usable resolutions. Others, such as 1 or 0, are placeholders. */
const MIN_RESOLUTION = 30;
const MAX_RESOLUTION = 2400;

/** Units of a resolution: an inch, or a part of a metre, in inches. */
export const UNIT = { inch: 1, centimetre: 2.54, metre: 0.0254 } as const;

/** Half a pixel per metre, in pixels per inch, to which PNG and BMP round: 300 is 299.9994. */
const ROUNDING = 0.0128;

/**
 * Returns a resolution as a property of an image.
 *
 * @param x pixels across in a unit
 * @param y pixels down in a unit
 * @param unit factor that makes them pixels per inch; see {@link UNIT}. For {@link UNIT.metre},
 *   whole numbers of pixels per inch are restored.
 * @returns no property if the unit is not known, or if a number is less than 30 or more than 2400
 */
export function resolutionOf(
  x: number | undefined,
  y: number | undefined,
  unit: number | undefined,
): Pick<ImageFacts, 'resolution'> {
  if (!x || !y || !unit) return {};
  const [across, down] = [perInch(x, unit), perInch(y, unit)];
  const isUsable = Math.min(across, down) >= MIN_RESOLUTION && Math.max(across, down) <= MAX_RESOLUTION;
  return isUsable ? { resolution: { x: across, y: down } } : {};
}

function perInch(count: number, unit: number): number {
  const stated = count * unit;
  const whole = Math.round(stated);
  return unit === UNIT.metre && Math.abs(stated - whole) < ROUNDING ? whole : stated;
}

/** Units by the number that TIFF and EXIF state (TIFF 6.0, section 8). 1 is an unknown one. */
const TIFF_UNITS: Readonly<Record<number, number>> = { 2: UNIT.inch, 3: UNIT.centimetre };

/** Returns the factor of the unit that TIFF or EXIF states. Inch is the default. */
export const tiffUnit = (stated = 2): number | undefined => TIFF_UNITS[stated];
