// The flame graph of an area, under the timeline: a press on a frame makes it fill the width.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {getFlame} from '../api/client';
import type {FlameReply} from '../api/types';
import {formatDuration, formatPct, plural} from '../base/format';
import {FlameCanvas} from '../flame/flame_canvas';
import {frameLabel} from '../flame/flame_painter';
import {buildTree, layoutTree} from '../model/flame_tree';
import {loadKernels, shortNamesOf} from '../model/kernel_table';
import {ViewLink} from '../ui/link';
import {latest, useResource} from '../ui/resource';
import {StandIn} from '../ui/states';
import type {TimelineModel} from './data/timeline_model';

const METRICS = [
  {metric: 'gpu', label: 'GPU time'},
  {metric: 'waiting', label: 'GPU waiting'},
  {metric: 'cpu', label: 'host threads'},
] as const;
type Metric = (typeof METRICS)[number]['metric'];

export function DockFlame(props: {model: TimelineModel; t0: number; t1: number}): JSX.Element {
  const {model, t0, t1} = props;
  const hasGpu = model.tracks.tracks.some(t => t.kind === 'stream' && t.count > 0);
  const [metric, setMetric] = useState<Metric>(hasGpu ? 'gpu' : 'cpu');
  const flame = useResource(
    `${model.trace.id}/${model.trace.generation} ${metric} ${t0} ${t1}`,
    signal => getFlame(model.trace.id, {metric, by: 'op', t0, t1}, signal),
  );
  const reply = flame.kind === 'ready' ? flame.value : undefined;
  // a kernel is called the same here as in the rows above and in the whole graph
  const kernels = useResource(`${model.trace.id}/${model.trace.generation}`, () =>
    loadKernels(model.trace.id, model.trace.generation),
  );
  const shortNames = useMemo(() => shortNamesOf(latest(kernels)), [kernels]);
  return (
    <div class="tl-dock-body">
      <div class="tl-dock-rows">
        {METRICS.filter(m => hasGpu || m.metric === 'cpu').map(m => (
          <label key={m.metric}>
            <input
              type="radio"
              name="dock-flame"
              checked={m.metric === metric}
              onChange={() => setMetric(m.metric)}
            />{' '}
            {m.label}
          </label>
        ))}
        <ViewLink view={{page: 'flame', flameMetric: metric, flameBy: 'op'}}>
          all of the flame graph
        </ViewLink>
      </div>
      <StandIn of={flame} what="the flame graph" />
      {reply &&
        (reply.total_ns > 0 ? (
          <Graph key={`${metric} ${t0} ${t1}`} reply={reply} shortNames={shortNames} />
        ) : (
          <p class="tl-muted">Nothing of that in this area.</p>
        ))}
    </div>
  );
}

function Graph({
  reply,
  shortNames,
}: {
  reply: FlameReply;
  shortNames: ReadonlyMap<string, string>;
}): JSX.Element {
  const [tree] = useState(() => buildTree(reply.nodes));
  const [focus, setFocus] = useState(0);
  const layout = layoutTree(tree, focus, []);
  const value = (node: number): string => formatDuration(layout.valueNs[node] ?? 0);
  const all = layout.valueNs[0] ?? 0;
  return (
    <div class="tl-dock-flame">
      <FlameCanvas
        tree={tree}
        layout={layout}
        match={undefined}
        name="Flame graph of the area"
        labelOf={node => (node === 0 ? /* text */ 'all' : frameLabel(tree, node, shortNames))}
        valueText={value}
        describe={node =>
          `${value(node)}, ${formatPct((100 * (layout.valueNs[node] ?? 0)) / Math.max(1, all))}, ` +
          plural(tree.slices[node] ?? 0, 'time')
        }
        onFocus={setFocus}
        onDrop={() => undefined}
        onReset={() => setFocus(0)}
      />
    </div>
  );
}
