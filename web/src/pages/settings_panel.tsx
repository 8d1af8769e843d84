// What the recorder saw of the run's settings, and what the import made of the file.
import {Fragment, type JSX} from 'preact';
import type {Analysis, TraceInfo} from '../api/types';
import {THIN, exactNs, formatBytes, formatCount, formatDuration, plural} from '../base/format';
import {settingGroups} from '../model/overview';
import {IconChevron} from '../ui/icons';

export function SettingsPanel({analysis}: {analysis: Analysis}): JSX.Element {
  const groups = settingGroups(analysis.settings);
  const count = groups.reduce((sum, group) => sum + group.items.length, 0);
  if (count === 0)
    return (
      <section class="panel panel-slim">
        <header class="panel-head">
          <h2>Settings</h2>
          <span class="panel-aside faint">not recorded in this trace</span>
        </header>
      </section>
    );
  return (
    <details class="panel panel-fold">
      <summary class="panel-head">
        <IconChevron />
        <h2>Recorded settings</h2>
        <span class="panel-aside">{plural(count, 'setting')}</span>
      </summary>
      {groups.map(group => (
        <div key={group.title} class="setting-group">
          {group.title !== '' && <h3>{group.title}</h3>}
          <dl class="facts">
            {group.items.map(item => (
              <Fragment key={item.key}>
                <dt>{item.key}</dt>
                <dd class="break">{item.value}</dd>
              </Fragment>
            ))}
          </dl>
        </div>
      ))}
    </details>
  );
}

const SEVERITY_WORDS: Readonly<Record<string, string>> = {
  info: 'note',
  repaired: 'repaired',
  dropped: 'dropped',
};

export function ImportPanel({trace}: {trace: TraceInfo}): JSX.Element {
  const report = trace.import_report;
  const dropped = report?.dropped_count ?? 0;
  const repaired = report?.repaired_count ?? 0;
  const summary =
    dropped === 0 && repaired === 0
      ? 'nothing dropped'
      : [
          dropped > 0 && `${formatCount(dropped)} dropped`,
          repaired > 0 && `${formatCount(repaired)} repaired`,
        ]
          .filter(Boolean)
          .join(', ');
  return (
    <details class="panel panel-fold">
      <summary class="panel-head">
        <IconChevron />
        <h2>Import</h2>
        <span class={`panel-aside ${dropped > 0 ? 'warn-text' : ''}`}>
          {plural(trace.event_count, 'event')}, {summary}
        </span>
      </summary>
      <dl class="facts">
        <dt>format</dt>
        <dd>{trace.format || 'unknown'}</dd>
        <dt>file</dt>
        <dd class="num">{formatBytes(trace.size_bytes)}</dd>
        <dt>duration</dt>
        <dd class="num" title={exactNs(trace.duration_ns)}>
          {formatDuration(trace.duration_ns)}
        </dd>
        <dt>slices</dt>
        <dd class="num">{formatCount(trace.slice_count)}</dd>
        {trace.host !== undefined && (
          <>
            <dt>host</dt>
            <dd class="break">{trace.host}</dd>
          </>
        )}
      </dl>
      {report && report.lines.length > 0 && (
        <ul class="report">
          {report.lines.map(line => (
            <li key={line.code} class={`report-${line.severity}`}>
              <span class="tag">{SEVERITY_WORDS[line.severity] ?? line.severity}</span>
              <span>
                {line.text || line.code}
                <span class="faint num">
                  {' '}
                  {`${formatCount(line.count)}${THIN}×`}
                  {line.first_offset_bytes !== undefined &&
                    `, first at byte ${formatCount(line.first_offset_bytes)}`}
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}
