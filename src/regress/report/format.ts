/** Formats a number of bytes in B, kB or MB (powers of 1000). */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [value, unit] = bytes < 1e6 ? [bytes / 1e3, 'kB'] : [bytes / 1e6, 'MB'];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

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
