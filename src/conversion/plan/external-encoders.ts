/** @module Arguments of other encoders, for the files that ImageMagick writes. Pure. */
import { encodeCopyright } from '../../images/copyright/blocks.ts';
import type { OutputType } from '../../tables/formats.ts';
import { OPTIONS } from '../../tables/options.ts';
import type { ToolName } from '../../tables/tools.ts';
import { FILE_TO_ENCODE, JXL_THREADS, SUFFIX, THREADS, words } from './step.ts';
import { type ConversionJob, type ConvertOptions, INPUT_FILE } from './types.ts';

/** Effort of WebP compression, 0 (fastest) to 6 (smallest). The default of libwebp. */
export const WEBP_METHOD = 4;
/** Effort of img2webp and cwebp without loss, 0 to 100. The default of libwebp. */
const LOSSLESS_EFFORT = 75;

/** Returns the quality to encode with: the default as long as none has been found. */
export const numericQuality = ({ quality }: Pick<ConvertOptions, 'quality'>): number =>
  quality === 'auto' ? OPTIONS.quality.default : quality;

/** Program that encodes a PNG of ImageMagick. */
interface ExternalEncoder {
  readonly tool: ToolName;
  /** Returns the arguments, without the names of the input and the output, which follow them. */
  args(job: Pick<ConversionJob, 'options'> & Partial<Pick<ConversionJob, 'isTranscoded'>>): readonly string[];
}

/** Encoders of formats that ImageMagick writes as PNG first. */
export const EXTERNAL_ENCODERS: Partial<Readonly<Record<OutputType, ExternalEncoder>>> = {
  avif: {
    tool: 'avifenc',
    // Full chroma resolution, for screenshots, and lossless transparency.
    args({ options }) {
      const level = Math.round(valueAt(AVIF_LEVELS, numericQuality(options)));
      const range = words('--min 0 --max 63 --minalpha 0 --maxalpha 0');
      const aom = words(`-c aom -j ${THREADS} -s 9 -y 444`);
      return [...aom, ...range, ...words(`-a end-usage=q -a color:cq-level=${level}`)];
    },
  },
  jxl: {
    tool: 'cjxl',
    // A JPEG that is transcoded keeps its data, so that its bytes can be restored.
    args({ options, isTranscoded }) {
      const distance = valueAt(JXL_DISTANCES, numericQuality(options)).toFixed(2);
      const coding = isTranscoded
        ? '--lossless_jpeg=1'
        : `-d ${distance} -e ${options.quality === 100 ? 2 : 4}`;
      return [JXL_THREADS, ...words(`--container=1 --quiet ${coding}`)];
    },
  },
};

/** Returns the arguments of the program that encodes the PNG, or transcodes the input. */
export function encoderArguments(job: ConversionJob): string[] {
  const args = EXTERNAL_ENCODERS[job.options.format]?.args(job) ?? [];
  return [...args, ...copyrightArguments(job), job.isTranscoded ? INPUT_FILE : FILE_TO_ENCODE, job.output];
}

/** Files with the copyright for the encoder of AVIF. Other formats get it after encoding. */
export const COPYRIGHT_FILES = [
  ['exif', 'copyright.exif'],
  ['xmp', 'copyright.xmp'],
] as const;

function copyrightArguments({ image: { copyright }, options }: ConversionJob): string[] {
  if (options.format !== 'avif' || options.metadata !== 'copyright' || !copyright) return [];
  const blocks = encodeCopyright(copyright, 'avif');
  return COPYRIGHT_FILES.flatMap(([kind, name]) => (blocks[kind] ? [`--${kind}`, name] : []));
}

/** Returns the arguments of cwebp, which keeps invisible colours, the profile and the metadata. */
export const exactWebpArguments = ({ output }: ConversionJob): string[] =>
  words(
    `-quiet -lossless -exact -q ${LOSSLESS_EFFORT} -m ${WEBP_METHOD} -metadata all ${FILE_TO_ENCODE} -o ${output}`,
  );

/**
 * Returns the arguments of pngquant, which prints its result: it would rename a file that it
 * writes, which Landlock forbids. Dithering at half of its strength looks the same, and takes up to
 * 11% fewer bytes.
 */
export const paletteArguments = ({ options: { colors, dither = true } }: ConversionJob): string[] =>
  words(`--speed 4 ${dither ? '--floyd=0.5' : '--nofs'} --output - ${colors} -- ${FILE_TO_ENCODE}`);

/** Returns the arguments of img2webp. An option applies to all frames after it. */
export function webpArguments({ image, options, output }: ConversionJob): string[] {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const coding = options.lossless
    ? ['-lossless', '-q', String(LOSSLESS_EFFORT)]
    : ['-lossy', '-q', String(numericQuality(options))];
  const frames = delaysMs.flatMap((delay, at) => [
    ...(delay === delaysMs[at - 1] ? [] : ['-d', String(delay)]),
    `frame${SUFFIX}-${String(at).padStart(5, '0')}.pam`,
  ]);
  return ['-loop', String(loopCount), ...coding, '-m', String(WEBP_METHOD), ...frames, '-o', output];
}

/**
 * Values of an encoder that lead to the same visible quality as in WebP. Between two qualities,
 * they are interpolated. bench/README.md describes the measurements.
 */
interface QualityTable {
  readonly qualities: readonly number[];
  readonly values: readonly number[];
}

/** Quantizer of libaom, 0 (best) to 63. */
const AVIF_LEVELS: QualityTable = {
  qualities: [1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100],
  values: [51.9, 47.6, 44.4, 40, 36.9, 33.9, 31, 28.8, 26.2, 25.1, 21.1, 16.7, 11, 6.3, 3.5],
};

/** Butteraugli distance of libjxl, 0 (lossless) to 25. */
const JXL_DISTANCES: QualityTable = {
  qualities: [1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 99, 100],
  values: [17, 11.8, 9, 6.2, 4.5, 3.4, 2.94, 2.4, 2.05, 1.85, 1.55, 1.25, 0.95, 0.65, 0.5, 0],
};

/** Returns the encoder's value for a quality of 1 to 100. */
function valueAt({ qualities, values }: QualityTable, quality: number): number {
  const next = Math.max(
    1,
    qualities.findIndex((from) => quality <= from),
  );
  const [low = 0, high = 0] = qualities.slice(next - 1);
  const [lowValue = 0, highValue = 0] = values.slice(next - 1);
  return lowValue + ((quality - low) / (high - low)) * (highValue - lowValue);
}
