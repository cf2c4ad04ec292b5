/** @module Converts files of the list, one request for each. */
import { signal } from '@preact/signals';
import { OUTPUTS } from '../../formats.ts';
import type { Note } from '../../notes.ts';
import { type ApiResponse, ConnectionError, post } from '../client/api.ts';
import { loadPreview } from '../client/preview.ts';
import { queued } from '../client/queue.ts';
import { announcement, forgetResult, type Item, type Result } from '../state/items.ts';
import { fields, options } from '../state/options.ts';

export function convert(items: readonly Item[]): void {
  for (const item of items) convertOne(item);
}

async function convertOne({ file, state }: Item): Promise<void> {
  const query = fields.value.toString();
  const name = resultName(file.name);
  const controller = new AbortController();
  const cancel = () => controller.abort();
  forgetResult(state.value);
  state.value = { at: 'waiting', cancel };
  try {
    const response = await queued((signal) => {
      state.value = { at: 'uploading', cancel, share: 0 };
      const onUpload = (share: number) => {
        state.value = share < 1 ? { at: 'uploading', cancel, share } : { at: 'converting', cancel };
      };
      return post('/convert', createForm(query, file), signal, onUpload).catch((error) => {
        state.value = { at: 'waiting', cancel };
        throw error;
      });
    }, controller.signal);
    state.value = { at: 'done', query, result: toResult(response, name) };
  } catch (error) {
    const message = await describeFailure(error, file);
    if (controller.signal.aborted) {
      state.value = { at: 'ready' };
    } else {
      state.value = { at: 'failed', query, message };
      announcement.value = `${file.name}: ${message}`;
    }
  }
}

/** Returns the message of a failed request. Browsers report a file that they cannot read as a lost connection. */
async function describeFailure(error: unknown, file: File): Promise<string> {
  if (error instanceof ConnectionError) {
    try {
      await file.slice(0, 1).arrayBuffer();
    } catch {
      return `${file.name} cannot be read. It may have been changed, moved or deleted. Add it again.`;
    }
  }
  return (error as Error).message;
}

/** Creates a form with the options before the file, so that the server knows them while it receives the file. */
function createForm(query: string, file: File): FormData {
  const form = new FormData();
  for (const [name, value] of new URLSearchParams(query)) form.append(name, value);
  form.append('file', file);
  return form;
}

/** Returns the file name with the extension of the output format. */
export function resultName(name: string): string {
  return `${name.replace(/(?<=.)\.[^.]*$/su, '')}.${OUTPUTS[options.value.format].extension}`;
}

function toResult({ blob, header }: ApiResponse, name: string): Result {
  const preview: Result['preview'] = signal(undefined);
  if (!isPdf(blob)) loadPreview(preview, blob);
  const notes = header('X-Conversion-Notes').split(', ').filter(Boolean) as Note[];
  return { blob, url: URL.createObjectURL(blob), name, notes, preview };
}

/** Returns whether a result is a PDF, the only output that `<img>` cannot show. */
export const isPdf = (blob: Blob): boolean => blob.type === OUTPUTS.pdf.mediaType;
