// Pages, and parts of pages, that most visits do not open: in a separate file, fetched later.
export {ComparePage} from './compare_page';
export {FindingsPage} from './findings_page';
export {FlamePage} from './flame_page';
export {KernelsPage} from './kernels_page';
export {LabelEditor} from './label_editor';
export {RunPage} from './run_page';
export {SelectionBar} from './selection_bar';
export {SqlPage} from './sql_page';
