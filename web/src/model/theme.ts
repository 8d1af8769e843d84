// Light or dark: the choice (auto, light, dark), its result, and the colors of the
// causes as CSS custom properties, so that style sheet and canvases have one source.
import {computed, effect, signal} from '@preact/signals';
import {CAUSES, CAUSE_STYLES} from '../base/causes';
import {THEMES, theme, type Theme} from './view_state';

/** What people read for it. */
export const THEME_WORDS: Readonly<Record<Theme, string>> = {
  auto: 'system',
  light: 'light',
  dark: 'dark',
};
const STORAGE_KEY = 'lacuna.theme';
const systemIsDark = signal(false);

/** What is on screen now. Canvases redraw when it changes. */
export const resolvedTheme = computed<'light' | 'dark'>(() =>
  theme.value === 'auto' ? (systemIsDark.value ? 'dark' : 'light') : theme.value,
);

export function nextTheme(current: Theme): Theme {
  return THEMES[(THEMES.indexOf(current) + 1) % THEMES.length] ?? 'auto';
}

/** Call once at start. */
export function startTheme(root: HTMLElement): void {
  const media = matchMedia('(prefers-color-scheme: dark)');
  systemIsDark.value = media.matches;
  media.addEventListener('change', event => (systemIsDark.value = event.matches));
  const stored = readStored();
  if (stored !== undefined) theme.value = stored;
  effect(() => {
    const resolved = resolvedTheme.value;
    root.dataset['theme'] = resolved;
    root.style.colorScheme = resolved;
    for (const cause of CAUSES) {
      const style = CAUSE_STYLES[cause];
      const dark = resolved === 'dark';
      root.style.setProperty(`--cause-${cause}`, dark ? style.dark : style.light);
      root.style.setProperty(`--on-cause-${cause}`, dark ? style.onDark : style.onLight);
    }
  });
  effect(() => store(theme.value));
}

function readStored(): Theme | undefined {
  try {
    const text = localStorage.getItem(STORAGE_KEY);
    return THEMES.find(t => t === text);
  } catch {
    return undefined; // storage can be forbidden
  }
}

function store(value: Theme): void {
  try {
    localStorage.setItem(STORAGE_KEY, value);
  } catch {
    // storage can be forbidden: the choice then lasts as long as the page
  }
}
