// Pages, and parts of pages, that most visits do not open: in a separate file, fetched later.
export {Broken} from './broken_trace';
export {ComparePage} from './compare_page';
export {DeleteDialog} from './delete_dialog';
export {FindingsPage} from './findings_page';
export {FlamePage} from './flame_page';
export {GettingStarted} from './getting_started';
export {LabelEditor} from './label_editor';
export {OverviewCharts} from './overview_charts';
export {Palette} from './palette';
export {ProjectPage} from './project/project_page';
export {RunPage} from './run_page';
export {SelectionBar} from './selection_bar';
export {ShareDialog} from './share_dialog';
export {SqlPage} from './sql_page';
export {SqlStrip} from './sql_strip';
export {TablesPage} from './tables_page';
export {HelpDialog} from '../ui/help';
