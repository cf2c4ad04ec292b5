import { render } from 'preact';
import { listenForFiles, receiveShared } from './state/add-files.ts';
import { loadFormats } from './state/formats.ts';
import { Page } from './view/page.tsx';

render(<Page />, document.getElementById('page') as HTMLElement);
listenForFiles();
loadFormats();
receiveShared();
