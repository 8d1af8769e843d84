// What esbuild puts before every file of the bundle (build.mjs).
// What its elements are made with:
export {Fragment, h} from 'preact';
// What comes later begins with all of the first scripts, so these stay one file: in three files,
// with the names that they exchange, they were 3 kB more.
import './src/main.tsx';
