import { computed } from '@preact/signals';
import { inParts, nameOfArchive } from '../client/archive.ts';
import { nameOfResult } from '../client/convert.ts';
import { most } from './batch-size.ts';
import { items } from './items.ts';
import { fields } from './options.ts';

/** The choices as a command: for the files of the list, or for one called photo.jpg while there are none. */
export const command = computed(() => {
  const files = items.value.map(({ file }) => file);
  if (files.length > 1) return commandForMany(files);
  const { name, webkitRelativePath: path } = files[0] ?? { name: 'photo.jpg', webkitRelativePath: '' };
  const result = nameOfResult(name);
  // curl replaces no file, so a result of the same name would fail.
  const saved = result === name ? `-o ${quoted(result.replace(/(?=\.[^.]*$)/, ' (2)'))}` : '-OJ';
  return curl(saved, 'convert', [`file=@${formName(path || name)}`]);
});

/** One line for each archive. */
function commandForMany(files: readonly File[]): string {
  const parts = inParts(files, most.value);
  return parts
    .map((part, at) => {
      const saved = parts.length > 1 ? `-o ${nameOfArchive(at, parts.length)}` : '-OJ';
      const said = part.map(({ name, webkitRelativePath: path }) => `files=@${formName(path || name)}`);
      return curl(saved, 'batch', said);
    })
    .join('\n');
}

/** With -f, since the words of an error would be saved as if they were the result. */
function curl(saved: string, endpoint: 'convert' | 'batch', parts: readonly string[]): string {
  const said = [...fields.value].map(([name, value]) => `${name}=${value}`);
  const flags = [...said, ...parts].map((part) => `-F ${quoted(part)}`);
  return ['curl -f', saved, ...flags, quoted(`${location.origin}/api/v1/${endpoint}`)].join(' ');
}

/** curl takes what follows a `;` or `,` for something else, unless the name is in quotes. */
function formName(name: string): string {
  return /[;,"\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
}

/** As one word of a shell, which needs no quotes for most. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
