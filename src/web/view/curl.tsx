import { useSignal } from '@preact/signals';
import { command } from '../actions/curl.ts';
import { announcement } from '../state/items.ts';

/** The curl command for the current options and files. */
export function Curl() {
  const copied = useSignal('');
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(command.value);
    copied.value = command.value;
    announcement.value = 'Command copied.';
  };
  return (
    <details class="curl">
      <summary>As curl</summary>
      <textarea readOnly rows={6} aria-label="curl command" value={command} />
      {/* Browsers provide the clipboard only over HTTPS and on localhost. */}
      {navigator.clipboard && (
        <button type="button" class="button plain" onClick={copy}>
          {copied.value === command.value ? 'Copied' : 'Copy'}
        </button>
      )}
    </details>
  );
}
