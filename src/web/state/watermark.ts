/** @module The image of this device that is put on each result. */
import { computed, signal } from '@preact/signals';

/** The watermarks by the key that a query has. Results in progress need the earlier ones. */
const files = new Map<string, File>();
/** The key of the watermark; empty for none. */
export const watermarkKey = signal('');
/** The watermark; undefined for none. */
export const watermark = computed(() => files.get(watermarkKey.value));

/** Returns the watermark of a query. */
export const watermarkOf = (key: string): File | undefined => files.get(key);

/** Sets the watermark of all files. */
export function setWatermark(file: File | undefined): void {
  const key = file ? `${files.size + 1}/${file.name}` : '';
  if (file) files.set(key, file);
  watermarkKey.value = key;
}
