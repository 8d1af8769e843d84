// Under the timeline while nothing is selected: findings, what is in view, gaps, steps, search hits.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {searchSlices} from '../api/client';
import {exactNs, formatCount, formatDuration, plural} from '../base/format';
import {query, timeWindow, type DockTab} from '../model/view_state';
import {ViewLink} from '../ui/link';
import {latest, useResource} from '../ui/resource';
import {StandIn} from '../ui/states';
import {AreaDock} from './area_dock';
import {BookmarkList} from './bookmarks_panel';
import {trackLabel} from './data/rows';
import type {Span} from './data/view_math';
import type {DetailsProps} from './details_parts';
import {DockList, ROWS_SHOWN} from './dock_list';

/** A window counts as chosen when it rests for that long. */
const REST_MS = 300;

export function WholeDock({model, navigator, tab}: DetailsProps & {tab: DockTab}): JSX.Element {
  const span = useResting(model.window);
  switch (tab) {
    case 'findings':
      return <Findings model={model} navigator={navigator} />;
    case 'view':
      return (
        <AreaDock
          model={model}
          navigator={navigator}
          t0={Math.floor(span.t0)}
          t1={Math.max(Math.floor(span.t0) + 1, Math.ceil(span.t1))}
        />
      );
    case 'gaps':
    case 'steps':
      return <DockList model={model} name={tab} />;
    case 'hits':
      return <Hits model={model} navigator={navigator} text={query.value.trim()} from={span.t0} />;
    case 'bookmarks':
      return <BookmarkList model={model} navigator={navigator} />;
    case '':
      return <></>;
  }
}

/** The window, once it has stopped moving. */
function useResting(now: Span): Span {
  const [span, setSpan] = useState(now);
  const moved = timeWindow.value;
  useEffect(() => {
    const timer = setTimeout(() => setSpan(now), REST_MS);
    return () => clearTimeout(timer);
  }, [moved]);
  return span;
}

function Findings({model, navigator}: DetailsProps): JSX.Element {
  const findings = model.analysis?.findings ?? [];
  return (
    <ol class="tl-dock-findings">
      {findings.map((finding, i) => (
        <li key={finding.id}>
          {finding.evidence[0] ? (
            <ViewLink
              view={navigator.viewOfEvidence(finding.evidence[0])}
              title="Show where"
              onPress={() => navigator.finding(i)}
            >
              {finding.title}
            </ViewLink>
          ) : (
            <span title="It has no place in the timeline">{finding.title}</span>
          )}
        </li>
      ))}
    </ol>
  );
}

// ---- search hits

const ORDERS = [
  {order: 'dur', label: 'longest first'},
  {order: 'start', label: 'from the start of the view'},
] as const;

function Hits(props: DetailsProps & {text: string; from: number}): JSX.Element {
  const {model, navigator, text, from} = props;
  const [chosen, setOrder] = useState<'dur' | 'start'>();
  // a row is read as it is drawn
  const sort = chosen ?? (text.startsWith('track:') ? 'start' : 'dur');
  // the end of what starts before the view
  const after = sort === 'start' && from > 0 ? `${Math.ceil(from) - 1}.${2 ** 32 - 1}` : '';
  const found = useResource(
    `${model.trace.id}/${model.trace.generation} ${sort} ${after} ${text}`,
    signal => searchSlices(model.trace.id, {q: text, limit: ROWS_SHOWN, sort, after}, signal),
  );
  const ready = latest(found);
  if (!ready) return <StandIn of={found} what="the hits" />;
  const {hits, total} = ready;
  return (
    <div class="tl-dock-body">
      <div class="tl-dock-rows">
        {ORDERS.map(o => (
          <label key={o.order}>
            <input
              type="radio"
              name="dock-hits"
              checked={o.order === sort}
              onChange={() => setOrder(o.order)}
            />{' '}
            {o.label}
          </label>
        ))}
        <span class="tl-muted" role="status">
          {plural(total, 'hit')}
          {hits.length < total &&
            `, ${sort === 'dur' ? 'the first ' : ''}${formatCount(hits.length)} shown`}
        </span>
      </div>
      <table class="tl-dock-table">
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col">duration</th>
            <th scope="col">starts at</th>
            <th scope="col" class="tl-dock-kind">
              row
            </th>
          </tr>
        </thead>
        <tbody>
          {hits.map(hit => {
            const track = model.track(hit.track);
            return (
              <tr key={hit.slice}>
                <th scope="row" title={hit.name}>
                  <ViewLink
                    view={navigator.viewOfSlice(hit.slice, {
                      t0: hit.start_ns,
                      t1: hit.start_ns + hit.dur_ns,
                    })}
                  >
                    {hit.name || '(no name)'}
                  </ViewLink>
                </th>
                <td title={exactNs(hit.dur_ns)}>{formatDuration(hit.dur_ns)}</td>
                <td title={exactNs(hit.start_ns)}>{formatDuration(hit.start_ns, 7)}</td>
                <td class="tl-dock-kind">{track ? trackLabel(model.tracks, track).label : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
