/** @module The curl commands that convert the files of the list. */
import { computed } from '@preact/signals';
import { curlFileName, shellWords } from '../../text.ts';
import { maxFiles } from '../state/batch-size.ts';
import { items } from '../state/items.ts';
import { fields } from '../state/options.ts';
import { archiveName, chunk } from './archive.ts';
import { resultName } from './convert.ts';

/** The curl command for the current options and files; for photo.jpg if the list is empty. */
export const command = computed(() => {
  const files = items.value.map(({ file }) => file);
  if (files.length > 1) return batchCommand(files);
  const { name, webkitRelativePath: path } = files[0] ?? { name: 'photo.jpg', webkitRelativePath: '' };
  const result = resultName(name);
  // curl -OJ does not overwrite files, so a result with the name of the input would fail.
  const output = result === name ? ['-o', result.replace(/(?=\.[^.]*$)/, ' (2)')] : ['-OJ'];
  return curl(output, 'convert', [`file=@${curlFileName(path || name)}`]);
});

/** Formats one curl command per archive. */
function batchCommand(files: readonly File[]): string {
  const parts = chunk(files, maxFiles.value);
  return parts
    .map((part, at) => {
      const output = parts.length > 1 ? ['-o', archiveName(at, parts.length)] : ['-OJ'];
      const fileFields = part.map(
        ({ name, webkitRelativePath: path }) => `files=@${curlFileName(path || name)}`,
      );
      return curl(output, 'batch', fileFields);
    })
    .join('\n');
}

/** Formats a curl command. With -f, curl does not save error responses as results. */
function curl(output: readonly string[], endpoint: 'convert' | 'batch', parts: readonly string[]): string {
  const optionFields = [...fields.value].map(([name, value]) => `${name}=${value}`);
  const form = [...optionFields, ...parts].flatMap((part) => ['-F', part]);
  return shellWords(['curl', '-f', ...output, ...form, `${location.origin}/api/v1/${endpoint}`]);
}
