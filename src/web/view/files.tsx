/** @module What the page shows as soon as it has files. The first visit does not load it. */
import '../style/files.css';

export { loadZipWriter } from '../actions/archive.ts';
export { convert } from '../actions/convert-files.ts';
export { ActionBar } from './action-bar.tsx';
export { CombinationBar, CombinationPreview } from './combination-bar.tsx';
export { FileList } from './file-list.tsx';
export { OpenMenu } from './file-menu.tsx';
export { OpenGivesAway } from './gives-away.tsx';
export { OrderBar } from './order.tsx';
export { Summary } from './summary.tsx';
