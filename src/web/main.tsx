import { render } from 'preact';
import { learnFormats } from './state/formats.ts';
import { listenForFiles } from './state/gather.ts';
import { Page } from './view/page.tsx';

render(<Page />, document.getElementById('page') as HTMLElement);
listenForFiles();
learnFormats();
