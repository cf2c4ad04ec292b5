import type { Options } from '../state/options.ts';
import { isSideways, toTransform } from '../state/turns.ts';

interface OriginalProps {
  readonly src: string;
  /** Size in pixels. Without it, the image is stretched over the element. */
  readonly size: { readonly width: number; readonly height: number } | undefined;
  /** The options that rotate and flip it. */
  readonly options: Options;
}

/** An image as the options turn it, in an element of any size. */
export function Original({ src, size = { width: 1, height: 1 }, options }: OriginalProps) {
  const { width, height } = size;
  const [across, down] = isSideways(options) ? [height, width] : [width, height];
  return (
    <div class="before">
      <img
        src={src}
        alt="The original"
        draggable={false}
        style={{
          // The image is turned around its centre, after it was scaled. So a side has the unit that it gets by the rotation.
          ...(isSideways(options)
            ? { width: `${(100 * width) / down}cqh`, height: `${(100 * height) / across}cqw` }
            : { width: `${(100 * width) / across}cqw`, height: `${(100 * height) / down}cqh` }),
          transform: `translate(-50%, -50%) ${toTransform(options)}`,
        }}
      />
    </div>
  );
}
