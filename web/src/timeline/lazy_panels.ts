// Panels that most visits do not open: in one file, fetched later.
export {AreaDetails} from './area_details';
export {SliceAround} from './slice_around';
export {WholeDock} from './whole_dock';
