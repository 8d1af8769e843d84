// Pages that most visits do not open: in a separate file, fetched later.
export {ComparePage} from './compare_page';
export {FindingsPage} from './findings_page';
export {FlamePage} from './flame_page';
export {KernelsPage} from './kernels_page';
export {RunPage} from './run_page';
