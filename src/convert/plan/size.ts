import type { ConvertOptions, Picture } from './types.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * The largest picture that a conversion has to hold in memory, in pixels: what is stored, or of an
 * SVG what is drawn; 0 by 0 when it is not known, or when nothing is drawn at all.
 */
export function pixelsToHold(picture: Picture, options: ConvertOptions): Size {
  const { type, width = 0, height = 0 } = picture;
  if (type !== 'svg' || width === 0 || height === 0) return { width, height };
  if (options.format === 'pdf') return { width: 0, height: 0 };
  // Fitted inside the box, whether that makes it larger or smaller.
  const scale = Math.min(
    options.width ? options.width / width : Number.POSITIVE_INFINITY,
    options.height ? options.height / height : Number.POSITIVE_INFINITY,
  );
  if (!Number.isFinite(scale)) return { width, height };
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}
