import { computed } from '@preact/signals';
import { archiveName, chunk } from '../client/archive.ts';
import { resultName } from '../client/convert.ts';
import { maxFiles } from './batch-size.ts';
import { items } from './items.ts';
import { fields } from './options.ts';

/** The curl command for the current options and files; for photo.jpg if the list is empty. */
export const command = computed(() => {
  const files = items.value.map(({ file }) => file);
  if (files.length > 1) return batchCommand(files);
  const { name, webkitRelativePath: path } = files[0] ?? { name: 'photo.jpg', webkitRelativePath: '' };
  const result = resultName(name);
  // curl -OJ does not overwrite files, so a result with the name of the input would fail.
  const outputFlag = result === name ? `-o ${quoted(result.replace(/(?=\.[^.]*$)/, ' (2)'))}` : '-OJ';
  return curl(outputFlag, 'convert', [`file=@${formName(path || name)}`]);
});

/** Formats one curl command per archive. */
function batchCommand(files: readonly File[]): string {
  const parts = chunk(files, maxFiles.value);
  return parts
    .map((part, at) => {
      const outputFlag = parts.length > 1 ? `-o ${archiveName(at, parts.length)}` : '-OJ';
      const fileFields = part.map(({ name, webkitRelativePath: path }) => `files=@${formName(path || name)}`);
      return curl(outputFlag, 'batch', fileFields);
    })
    .join('\n');
}

/** Formats a curl command. With -f, curl does not save error responses as results. */
function curl(outputFlag: string, endpoint: 'convert' | 'batch', parts: readonly string[]): string {
  const optionFields = [...fields.value].map(([name, value]) => `${name}=${value}`);
  const flags = [...optionFields, ...parts].map((part) => `-F ${quoted(part)}`);
  return ['curl -f', outputFlag, ...flags, quoted(`${location.origin}/api/v1/${endpoint}`)].join(' ');
}

/** Quotes a file name in which curl would interpret `;`, `,`, `"` or `\`. */
function formName(name: string): string {
  return /[;,"\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
}

/** Quotes an argument for a POSIX shell, if needed. */
function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}
