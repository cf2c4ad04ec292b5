/** @module Formats changes of size and durations for people. */

import { formatBytes } from '../../text.ts';

/** Formats a change of size, such as "139 kB → 76 kB (−45%)". */
export function formatChange(before: number, after: number): string {
  return `${formatBytes(before)} → ${formatBytes(after)} (${formatPercent(before, after)})`;
}

function formatPercent(before: number, after: number): string {
  const percent = before === 0 ? 0 : Math.round((after / before - 1) * 100);
  if (percent === 0) return '±0%';
  return percent > 0 ? `+${percent}%` : `−${-percent}%`;
}

/** Formats a duration as h:mm:ss, or m:ss below an hour. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [hours = 0, ...rest] = parts;
  const padded = rest.map((part) => String(part).padStart(2, '0'));
  return hours > 0 ? `${hours}:${padded.join(':')}` : padded.join(':').replace(/^0/, '');
}
