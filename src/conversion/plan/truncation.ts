/**
 * @module Decides what a result shows instead of the missing part of a truncated PNG, which was filled with zeros. Browsers
 * show the same. Pure.
 */
import type { Size } from './image-info.ts';
import type { PlanContext } from './types.ts';

/** Makes missing rows transparent, or repeats the nearest pixels of an interlaced image in them. */
export function hideMissingPart({ image }: PlanContext): string[] {
  const { width = 0, height = 0, shownPart } = image;
  if (!shownPart || shownPart.rows >= height) return [];
  const { rows, step } = shownPart;
  if (step) return repeatPixels({ width, height }, rows, step);
  return [
    ...['-crop', `${width}x${rows}+0+0`, '+repage', '-alpha', 'set'],
    ...['-background', 'none', '-compose', 'Copy', '-extent', `${width}x${height}`, '-compose', 'Over'],
  ];
}

/** Enlarges each known pixel to a square, and lays the whole rows over that. */
function repeatPixels({ width, height }: Size, rows: number, step: number): string[] {
  const [across, down] = [Math.ceil(width / step), Math.ceil(height / step)];
  // Sampling is exact if the sides are multiples of the step. From 0 %, rounding errors would lead to the pixels before.
  const known = ['-extent', `${across * step}x${down * step}`, '-define', 'sample:offset=1'];
  const enlarged = ['-sample', `${across}x${down}!`, '-sample', `${across * step}x${down * step}!`];
  const whole = ['(', '-clone', '0', '-crop', `${width}x${rows}+0+0`, '+repage', ')'];
  return [
    ...['(', '+clone', ...known, ...enlarged, '-crop', `${width}x${height}+0+0`, '+repage', ')'],
    ...(rows > 0 ? whole : []),
    ...['-delete', '0'],
    ...(rows > 0 ? ['-compose', 'Copy', '-composite', '-compose', 'Over'] : []),
  ];
}
