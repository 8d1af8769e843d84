// Which keys do what, for the help dialog. Whoever binds a key registers it here.
import {signal} from '@preact/signals';

export interface Shortcut {
  /** As printed: ["G"], ["Shift", "G"]. */
  readonly keys: readonly string[];
  readonly text: string;
}
export interface ShortcutGroup {
  readonly title: string;
  readonly shortcuts: readonly Shortcut[];
}

export const shortcutGroups = signal<readonly ShortcutGroup[]>([]);

export const helpIsOpen = signal(false);

/** @return a function that takes the group away again */
export function registerShortcuts(group: ShortcutGroup): () => void {
  shortcutGroups.value = [...shortcutGroups.value, group];
  return () => {
    shortcutGroups.value = shortcutGroups.value.filter(g => g !== group);
  };
}

/** Whether a key press belongs to a field or a button and not to the page. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName);
}
