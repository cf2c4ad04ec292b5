/** @module The formats and limits of the server. */
import { computed, signal } from '@preact/signals';
import type { Formats, ImagemillError } from '../../client/library/index.ts';
import { DEFAULT_RETRY_S } from '../../client/library/retry.ts';
import { INPUTS } from '../../tables/formats.ts';
import { connect } from '../client/api.ts';
import type { Preview } from '../client/preview.ts';
import { queued } from '../client/queue.ts';
import { formatExcess, formatSwitchedOff, inputTypeOf, OTHER_EXTENSIONS, typeLabel } from '../format.ts';
import { isSet, options, SMALLEST, setOptions } from './options.ts';

/** Formats and limits of this server; undefined until loaded. */
export const formats = signal<Formats | undefined>(undefined);

/** The `accept` attribute of file pickers: the server's types and all of the system's images. */
export const accepted = computed(() =>
  [
    'image/*',
    ...[...(formats.value?.input ?? []), ...Object.keys(OTHER_EXTENSIONS)].map((name) => `.${name}`),
  ].join(),
);

/** Returns why the server would reject a file, as far as that is known before the upload. */
export function findRejection(file: File, preview: Preview | null | undefined): string | undefined {
  if (!formats.value) return undefined;
  const { input, limits } = formats.value;
  const type = inputTypeOf(file);
  // The server detects types by content. So only what is certainly another type is rejected here.
  const accepted = type
    ? INPUTS[type].names.some((name) => input.includes(name))
    : file.type === '' || file.type.startsWith('image/');
  if (!accepted)
    return type
      ? formatSwitchedOff(INPUTS[type].label)
      : `${typeLabel(file)} is not a format that this server converts.`;
  if (file.size === 0) return 'The file is empty.';
  if (file.size > limits.max_file_bytes)
    return formatExcess(file.size, limits.max_file_bytes, ['bytes', 'MB']);
  // The size of a drawing is that of its result.
  const { width, height } = (type !== 'svg' && preview) || { width: 0, height: 0 };
  const side = Math.max(width, height);
  if (side > limits.max_dimension)
    return `The image is ${side} pixels wide or high, more than the maximum of ${limits.max_dimension} pixels per side. This limit is fixed.`;
  const pixels = width * height;
  if (pixels > limits.max_pixels) return formatExcess(pixels, limits.max_pixels, ['pixels', 'megapixels']);
  return undefined;
}

/** Loads the formats. Retries until the server responds, for example after a restart. */
export async function loadFormats(): Promise<void> {
  const loaded = await queued((signal) => connect().formats({ signal }), new AbortController().signal).catch(
    ({ retryAfter = 0 }: ImagemillError) => {
      setTimeout(loadFormats, 1000 * (retryAfter || DEFAULT_RETRY_S));
    },
  );
  if (loaded) applyFormats(loaded);
}

function applyFormats(loaded: Formats): void {
  formats.value = loaded;
  if (!loaded.presets?.includes(options.value.preset)) setOptions({ preset: '' });
  const [first] = loaded.output;
  const { format } = options.value;
  if (first && isSet('format') && format !== SMALLEST && !loaded.output.includes(format))
    setOptions({ format: first });
}
