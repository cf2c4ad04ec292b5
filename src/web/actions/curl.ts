/** @module The curl commands that convert the files of the list. */
import { computed } from '@preact/signals';
import { curlFileName, shellWords } from '../../text.ts';
import { formats } from '../state/formats.ts';
import { items } from '../state/items.ts';
import { fields } from '../state/options.ts';
import { resultName } from './convert.ts';

/** The curl command for the current options and files; for photo.jpg if the list is empty. */
export const command = computed(() => {
  const [first, ...others] = items.value;
  if (first && others.length > 0) return batchCommand(items.value.map(({ path }) => path));
  const name = first?.file.name ?? 'photo.jpg';
  const result = resultName(name);
  // curl -OJ does not overwrite files, so a result with the name of the input would fail.
  const output = result === name ? ['-o', result.replace(/(?=\.[^.]*$)/, ' (2)')] : ['-OJ'];
  return curl(output, 'convert', [`file=@${curlFileName(first?.path ?? name)}`]);
});

/** Formats one curl command per archive, with as many files each as `POST /batch` accepts. */
function batchCommand(paths: readonly string[]): string {
  const parts = chunk(paths, formats.value?.limits.max_batch_files ?? paths.length);
  return parts
    .map((part, at) => {
      const output = parts.length > 1 ? ['-o', `converted-${at + 1}-of-${parts.length}.zip`] : ['-OJ'];
      const fileFields = part.map((path) => `files=@${curlFileName(path)}`);
      return curl(output, 'batch', fileFields);
    })
    .join('\n');
}

/** Splits a list into chunks of at most `size` items. */
function chunk<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, at) => all.slice(at * size, (at + 1) * size));
}

/** Formats a curl command. With -f, curl does not save error responses as results. */
function curl(output: readonly string[], endpoint: 'convert' | 'batch', parts: readonly string[]): string {
  const optionFields = [...fields.value].map(([name, value]) => `${name}=${value}`);
  const form = [...optionFields, ...parts].flatMap((part) => ['-F', part]);
  return shellWords(['curl', '-f', ...output, ...form, `${location.origin}/api/v1/${endpoint}`]);
}
