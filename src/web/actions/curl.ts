/** @module The curl commands that convert the files of the list. */
import { computed } from '@preact/signals';
import { formatCurl } from '../../base/shell.ts';
import { apiKey, SERVICE_URL, SHOWN_TYPES } from '../client/api.ts';
import { combines, nameOfCombined, plan } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import { items, queryOf } from '../state/items.ts';
import { choicesOf, options, panel, queryFor, SMALLEST } from '../state/options.ts';
import { watermark } from '../state/watermark.ts';
import { resultName } from './convert-files.ts';

/** The curl commands for the files of the list; for photo.jpg if it is empty. */
export const command = computed(() => {
  const [first, ...others] = items.value;
  if (combines.value && first) return combineCommands();
  if (others.length > 0) return batchCommands();
  const name = first?.file.name ?? 'photo.jpg';
  const choices = first ? choicesOf(first.own) : panel;
  const { format } = choices.all();
  const result = choices.isSet('format') && format !== SMALLEST && resultName(name, format);
  // curl -OJ does not overwrite files, so a result with the name of the input would fail.
  const output = result === name && result ? ['-o', result.replace(/(?=\.[^.]*$)/, ' (2)')] : ['-OJ'];
  return curl(output, 'convert', first ? queryOf(first) : queryFor(panel), [first?.path ?? name]);
});

/** Formats one command per archive: for files of equal options, as many as `POST /batch` takes. */
function batchCommands(): string {
  const size = formats.value?.limits.max_batch_files ?? items.value.length;
  const archives = [...Map.groupBy(items.value, queryOf)].flatMap(([query, group]) =>
    chunk(group, size).map((part) => ({ query, paths: part.map(({ path }) => path) })),
  );
  return archives
    .map(({ query, paths }, at) =>
      curl(
        archives.length > 1 ? ['-o', `converted-${at + 1}-of-${archives.length}.zip`] : ['-OJ'],
        'batch',
        query,
        paths,
      ),
    )
    .join('\n');
}

/** Formats a command for each file that is converted singly before, and one for the one file. */
function combineCommands(): string {
  const { parts, query } = plan.value;
  const paths = parts.map(({ item: { path }, query: own }, at) =>
    own === undefined ? path : `prepared-${at + 1}.${new URLSearchParams(own).get('output_format')}`,
  );
  const single = parts.flatMap(({ item, query: own }, at) =>
    own === undefined ? [] : [curl(['-o', paths[at] as string], 'convert', own, [item.path])],
  );
  const named = new URLSearchParams(query);
  if (options.value.name) named.set('name', nameOfCombined());
  return [...single, curl(['-OJ'], 'batch', named.toString(), paths)].join('\n');
}

/** Splits a list into chunks of at most `size` items. */
function chunk<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, at) => all.slice(at * size, (at + 1) * size));
}

function curl(
  output: readonly string[],
  endpoint: 'convert' | 'batch',
  query: string,
  files: readonly string[],
): string {
  const isBatch = endpoint === 'batch';
  const { watermark: key, ...fields } = Object.fromEntries(new URLSearchParams(query));
  return formatCurl({
    output,
    files,
    watermark: key && watermark.value?.name,
    url: `${SERVICE_URL}api/v1/${endpoint}`,
    // The server needs on_error before the files, to skip those that it rejects during the upload.
    fields: [
      ...Object.entries(fields),
      ...(isBatch && !fields.combine ? [['on_error', 'skip'] as const] : []),
    ],
    fileField: isBatch ? 'files' : 'file',
    accept: fields.output_format === SMALLEST ? SHOWN_TYPES : undefined,
    keyVariable: apiKey.value ? 'API_KEY' : undefined,
  });
}
