/** @module Formats sizes and durations for people. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Formats a number of bytes with two or three significant digits, in units of 1000. */
function formatSize(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power > 0 && value < 9.95 ? 1 : 0)} ${UNITS[power]}`;
}

/** Formats a change of size, such as "139 kB → 76 kB (−45%)". */
export function formatChange(before: number, after: number): string {
  return `${formatSize(before)} → ${formatSize(after)} (${formatPercent(before, after)})`;
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
