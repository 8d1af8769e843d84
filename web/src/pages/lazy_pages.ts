// Pages that most visits do not open: one file of their own, fetched later.
export {ComparePage} from './compare_page';
export {FindingsPage} from './findings_page';
export {FlamePage} from './flame_page';
export {KernelsPage} from './kernels_page';
export {RunPage} from './run_page';
