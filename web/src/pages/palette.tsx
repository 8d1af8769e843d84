// The command palette: every view, trace, run, finding and key by name; a time or a step to go to.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {findCommands, parseStep, parseTime} from '../model/palette/command_search';
import {commandsNow, paletteIsOpen, places, type Command} from '../model/palette/commands';
import {formatCount, formatDuration, plural} from '../base/format';
import {ns} from '../base/units';
import {loadRuns, runName, runs} from '../model/runs';
import {helpIsOpen} from '../model/shortcuts';
import {THEME_WORDS, nextTheme} from '../model/theme';
import {traces} from '../model/traces';
import {DEFAULT_VIEW, leap, openTrace, show, theme, timeWindow} from '../model/view_state';
import {NAMED_COMMANDS} from '../timeline/input/named_commands';
import {timelineRun} from '../timeline/input/running';
import {Dialog} from '../ui/dialog';

const SHOWN_MAX = 60;

/** What a typed place leads to. */
function goTo(text: string): readonly Command[] {
  const at = places.value;
  if (!at) return [];
  const found: Command[] = [];
  const time = parseTime(text);
  if (time !== undefined && time <= at.durationNs) {
    const now = timeWindow.value;
    const length = Math.min(now ? now.t1 - now.t0 : at.durationNs / 20, at.durationNs);
    const t0 = Math.min(Math.max(0, time - length / 2), at.durationNs - length);
    found.push({
      name: `Go to ${formatDuration(time, 9)}`,
      hint: 'timeline',
      run: () => leap({page: 'timeline', window: {t0: ns(t0), t1: ns(t0 + Math.max(1, length))}}),
    });
  }
  const step = parseStep(text);
  const start = step === undefined ? undefined : at.stepStartNs[step];
  if (step !== undefined && start !== undefined) {
    const dur = Math.max(1, at.stepDurNs[step] ?? 1);
    found.push({
      name: `Go to step ${step}`,
      hint: `${formatDuration(start)}, takes ${formatDuration(dur)}`,
      run: () => leap({page: 'timeline', window: {t0: ns(start), t1: ns(start + dur)}}),
    });
  }
  return found;
}

/** What the keys of the timeline do, where one is on screen. */
function ofTimeline(): readonly Command[] {
  const run = timelineRun.value;
  return run
    ? NAMED_COMMANDS.map(([command, name, hint]) => ({name, hint, run: () => run(command)}))
    : [];
}

/** What is there in every view. */
function everywhere(): readonly Command[] {
  const list: Command[] = [
    {name: 'All traces', hint: 'view', run: () => show(DEFAULT_VIEW)},
    {
      name: 'What findings mean',
      hint: 'view',
      run: () => show({...DEFAULT_VIEW, page: 'findings'}),
    },
    {
      name: /* text */ 'Settings',
      hint: 'view',
      run: () => show({...DEFAULT_VIEW, page: 'settings'}),
    },
    {
      name: /* text */ 'Tokens',
      hint: 'view',
      run: () => show({...DEFAULT_VIEW, page: 'settings', settingsTab: 'tokens'}),
    },
    {name: 'Shortcuts and legend', hint: '?', run: () => (helpIsOpen.value = true)},
    {
      name: `Theme: ${THEME_WORDS[nextTheme(theme.value)]}`,
      hint: 'change',
      run: () => (theme.value = nextTheme(theme.value)),
    },
  ];
  const ids = new Set<string>();
  for (const trace of traces.value) {
    if (trace.run !== undefined && !ids.has(trace.run)) {
      ids.add(trace.run);
      const run = runs.value.get(trace.run);
      if (run && run.trace_count > 1)
        list.push({
          name: runName(run.name) || 'unnamed run',
          hint: `run of ${plural(run.trace_count, 'trace')}`,
          run: () => show({...DEFAULT_VIEW, page: 'run', runId: run.id}),
        });
    }
    list.push({
      name: trace.name || 'unnamed trace',
      hint: trace.rank === undefined ? 'trace' : `trace of rank ${trace.rank}`,
      run: () => openTrace(trace.id),
    });
  }
  return list;
}

export function Palette(): JSX.Element {
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const options = useRef<HTMLUListElement>(null);
  const all = [
    ...goTo(text),
    ...findCommands([...commandsNow(), ...ofTimeline(), ...everywhere()], text),
  ];
  const shown = all.slice(0, SHOWN_MAX);
  const close = (): void => {
    paletteIsOpen.value = false;
  };
  const pick = (command: Command | undefined): void => {
    if (!command) return;
    close();
    command.run();
  };
  useEffect(() => {
    input.current?.focus();
    void loadRuns([...new Set(traces.value.flatMap(trace => trace.run ?? []))]);
  }, []);
  useEffect(() => {
    options.current?.children[active]?.scrollIntoView({block: 'nearest'});
  }, [active]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const way = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (way !== 0) {
      event.preventDefault();
      setActive((active + way + shown.length) % Math.max(1, shown.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      pick(shown[active]);
    }
  };
  return (
    <Dialog title="Go to or do" onClose={close}>
      <div class="palette">
        <input
          ref={input}
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-options"
          aria-activedescendant={shown[active] ? `palette-${active}` : undefined}
          aria-label="A command, a trace, a time or a step"
          placeholder={places.value ? 'command, trace, 1.5 s, step 12' : 'command, trace or run'}
          value={text}
          onInput={event => {
            setText(event.currentTarget.value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id="palette-options" ref={options} role="listbox" aria-label="Commands">
          {shown.map((command, i) => (
            <li
              key={i}
              id={`palette-${i}`}
              role="option"
              aria-selected={i === active}
              onPointerMove={() => setActive(i)}
              onClick={() => pick(command)}
            >
              <bdi class="ellipsis">{command.name}</bdi>
              <span class="faint">{command.hint}</span>
            </li>
          ))}
        </ul>
        <p class="faint" role="status">
          {all.length === 0
            ? 'Nothing has this name.'
            : all.length > SHOWN_MAX
              ? `${formatCount(all.length - SHOWN_MAX)} more: type to narrow it.`
              : ''}
        </p>
      </div>
    </Dialog>
  );
}
