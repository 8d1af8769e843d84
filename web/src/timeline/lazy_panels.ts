// Panels that most visits do not open: in one file, fetched later.
export {AreaDock} from './area_dock';
export {SliceAround} from './slice_around';
export {WholeDock} from './whole_dock';
