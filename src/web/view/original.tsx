import { parseCrop, type Size } from '../state/crop.ts';
import type { Options } from '../state/options.ts';
import { isSideways, toTransform, turnedSize } from '../state/turns.ts';

interface OriginalProps {
  readonly src: string;
  /** Size in pixels. Without it, the image is stretched over the element. */
  readonly size: Size | undefined;
  /** The options that rotate, flip and crop it. */
  readonly options: Options;
}

/** An image as the options turn and crop it, in an element of any size. */
export function Original({ src, size, options }: OriginalProps) {
  const { width, height } = size ?? { width: 1, height: 1 };
  const turned = turnedSize({ width, height }, options);
  const area = parseCrop(size ? options.crop : '', turned);
  return (
    <div class="before">
      <img
        src={src}
        alt="The original"
        draggable={false}
        style={{
          // The image is turned around its centre after it was scaled. So a side has the unit of the direction that it gets.
          ...(isSideways(options)
            ? { width: `${(100 * width) / area.height}cqh`, height: `${(100 * height) / area.width}cqw` }
            : { width: `${(100 * width) / area.width}cqw`, height: `${(100 * height) / area.height}cqh` }),
          left: `${(100 * (turned.width / 2 - area.left)) / area.width}%`,
          top: `${(100 * (turned.height / 2 - area.top)) / area.height}%`,
          transform: `translate(-50%, -50%) ${toTransform(options)}`,
        }}
      />
    </div>
  );
}
