import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ns} from '../base/units';
import {
  DEFAULT_VIEW,
  currentView,
  formatLocation,
  openTrace,
  parseLocation,
  parseSelection,
  show,
  type ViewState,
} from './view_state';

function roundTrip(view: ViewState): ViewState {
  const url = new URL(formatLocation(view), 'http://host/');
  return parseLocation(url.pathname, url.search);
}

test('the list has the empty address', () => {
  assert.equal(formatLocation(DEFAULT_VIEW), '');
  assert.deepEqual(parseLocation('/', ''), DEFAULT_VIEW);
});

test('every view survives its address', () => {
  const views: ViewState[] = [
    {...DEFAULT_VIEW, query: 'resnet v100', hideSimulated: true},
    {...DEFAULT_VIEW, page: 'run', runId: 'a b/c'},
    {...DEFAULT_VIEW, page: 'project', projectName: 'a b/c', projectQuery: 'tab=series&setting=x'},
    {...DEFAULT_VIEW, traceId: 'abc', page: 'overview'},
    {
      ...DEFAULT_VIEW,
      traceId: 'abc',
      page: 'timeline',
      window: {t0: ns(-500), t1: ns(1_234_567_890_123)},
      selection: {kind: 'slice', slice: 12},
      query: 'a b&c=%"<img>+',
    },
    {
      ...DEFAULT_VIEW,
      traceId: 'a',
      page: 'flame',
      selection: {kind: 'area', t0: ns(5), t1: ns(9)},
      flameMetric: 'gpu',
      flameBy: 'kernel',
      flameFocus: 12,
      flameDropped: [3, 40],
      flameForm: 'table',
    },
    {
      ...DEFAULT_VIEW,
      traceId: 'a',
      page: 'timeline',
      selection: {kind: 'gap', device: 3, t0: ns(5), t1: ns(9)},
    },
    {...DEFAULT_VIEW, traceId: 'a', page: 'kernels', tableSort: '-count', tableFilter: 'nchw'},
    {
      ...DEFAULT_VIEW,
      traceId: 'a',
      page: 'timeline',
      rows: 'all;pin=t3;only=a=b',
      areaTab: 'idle',
      dockTab: 'hits',
    },
    {
      ...DEFAULT_VIEW,
      traceId: 'a',
      page: 'kernels',
      tableName: 'copies',
      tableGroup: 'direction,track',
    },
  ];
  for (const view of views) assert.deepEqual(roundTrip(view), view);
});

test('addresses stay readable', () => {
  const view: ViewState = {
    ...DEFAULT_VIEW,
    traceId: 'abc',
    page: 'timeline',
    window: {t0: ns(10), t1: ns(30)},
    selection: {kind: 'area', t0: ns(11), t1: ns(12)},
  };
  assert.equal(formatLocation(view), 't/abc?view=timeline&v=10,20&sel=a:11,12');
});

test('two traces to compare have an address of their own', () => {
  const view: ViewState = {...DEFAULT_VIEW, page: 'compare', compareA: 'abc', compareB: 'def'};
  assert.equal(formatLocation(view), 'compare?a=abc&b=def');
  assert.deepEqual(parseLocation('/compare', '?a=abc&b=def'), view);
  assert.equal(parseLocation('compare', '').page, 'compare');
  assert.equal(parseLocation('/t/x', '?view=compare').page, 'overview');
});

test('what cannot be read is left out', () => {
  assert.equal(parseLocation('/t/%E0%A4%A', '').traceId, undefined);
  assert.equal(parseLocation('', '?view=flame').page, 'list');
  assert.equal(parseLocation('/t/x', '?view=list').page, 'overview');
  assert.equal(parseLocation('/t/x', '?view=nonsense').page, 'overview');
  for (const v of ['1,0', '1', 'a,b', '1,-2', '1e400,1', ''])
    assert.equal(parseLocation('/t/x', `?v=${v}`).window, undefined, v);
  for (const sel of ['s:-1', 's:1,2', 'a:9,5', 'a:1', 'g:0,1', 'x:1', 's:99999999999999999', 's:'])
    assert.equal(parseSelection(sel), undefined, sel);
});

test('an address that is none of ours is a page that says so, and is left for good', () => {
  for (const path of ['/elsewhere', 'traces/abc', '/t/a/b', '/t/%E0%A4%A', '/r/', '/compare/x'])
    assert.equal(parseLocation(path, '?q=x').page, 'not_found', path);
  for (const path of ['', '/', '/index.html'])
    assert.equal(parseLocation(path, '').page, 'list', path);
  assert.notEqual(
    formatLocation({...DEFAULT_VIEW, page: 'not_found'}),
    formatLocation(DEFAULT_VIEW),
  );
});

test('opening another trace leaves nothing of the one before', () => {
  openTrace('one');
  show({page: 'timeline', selection: {kind: 'slice', slice: 4}, query: 'gemm'});
  openTrace('two');
  assert.deepEqual(currentView(), {...DEFAULT_VIEW, page: 'overview', traceId: 'two'});
  openTrace(undefined);
  assert.deepEqual(currentView(), DEFAULT_VIEW);
});
