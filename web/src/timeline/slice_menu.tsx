// What can be done with the slice under a right click. The browser closes it: Esc, or a press elsewhere.
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {copyText} from '../ui/copy_button';
import type {TimelineModel} from './data/timeline_model';
import type {Command} from './input/keymap';
import type {Navigator} from './input/navigate';

const ITEMS: readonly (readonly [Command, string, string])[] = [
  ['fit', 'Zoom to it', 'F'],
  ['mark', 'Select its time', 'M'],
  ['bookmark', /* text */ 'Bookmark', 'Shift M'],
  ['link', 'Go to launch, or to what it launched', 'L'],
  ['slice-up', /* text */ 'Parent', 'Up'],
];

export function SliceMenu(props: {model: TimelineModel; navigator: Navigator}): JSX.Element | null {
  const {model, navigator} = props;
  const at = model.menu.value;
  const ref = useRef<HTMLDivElement>(null);
  const shown = useRef(at);
  useEffect(() => {
    shown.current = at;
    ref.current?.showPopover();
    ref.current?.querySelector('button')?.focus();
  }, [at]);
  if (!at) return null;
  const close = (): void => (model.menu.value = undefined);
  const act = (command: Command): void => {
    close();
    if (command === 'fit') navigator.withSelected(span => navigator.zoomTo(span));
    else navigator.run(command);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    const all = [...(ref.current?.querySelectorAll('button') ?? [])];
    const now = all.findIndex(each => each === document.activeElement);
    all[(now + step + all.length) % all.length]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  const {slice} = model;
  return (
    <div
      ref={ref}
      class="tl-menu"
      role="menu"
      popover="auto"
      style={{
        left: `min(${at.x}px, 100vw - 260px)`,
        top: `min(${at.y}px, 100vh - 190px)`,
      }}
      // told later than it happens: the next menu may have been asked for meanwhile
      onToggle={event =>
        event.newState === 'closed' && model.menu.peek() === shown.current && close()
      }
      onKeyDown={onKey}
    >
      {ITEMS.map(([command, label, keys]) => (
        <button key={command} type="button" role="menuitem" onClick={() => act(command)}>
          {label} <kbd>{keys}</kbd>
        </button>
      ))}
      <button
        type="button"
        role="menuitem"
        onClick={() => {
          const state = slice.peek();
          if (state.kind === 'ready') void copyText(state.slice.name);
          close();
        }}
      >
        Copy the full name
      </button>
    </div>
  );
}
