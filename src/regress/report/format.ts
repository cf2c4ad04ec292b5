/** @module Formats numbers for the HTML report. */

/** Formats a number with fixed decimals, or as ∞. */
export function formatNumber(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '∞';
}

/** Formats a relative change as a signed percentage; – if there was nothing before. */
export function formatChange(before: number, after: number): string {
  if (before === 0) return '–';
  const share = (after / before - 1) * 100;
  return `${share >= 0 ? '+' : '−'}${Math.abs(share).toFixed(1)}%`;
}
