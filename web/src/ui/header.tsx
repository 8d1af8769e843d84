// The bar at the top of every page.
import {signal} from '@preact/signals';
import type {ComponentChildren, JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import {helpIsOpen} from '../model/shortcuts';
import {THEME_WORDS, nextTheme} from '../model/theme';
import {DEFAULT_VIEW, theme} from '../model/view_state';
import {CopyLink} from './copy_link';
import {IconAuto, IconHelp, IconMoon, IconPerson, IconSun, Mark} from './icons';
import {ViewLink} from './link';

/** What the page is: the title of its tab, said when another page takes its place. */
export const title = signal('');

export function useTitle(text: string): void {
  useEffect(() => {
    document.title = title.value = text === '' ? 'Lacuna' : `${text} · Lacuna`;
  }, [text]);
}

export function Header({children}: {children?: ComponentChildren}): JSX.Element {
  return (
    <header class="header">
      <ViewLink class="brand" view={DEFAULT_VIEW} title="All traces">
        <Mark />
        <span>Lacuna</span>
      </ViewLink>
      <div class="header-middle">{children}</div>
      <CopyLink />
      <ViewLink
        class="button button-quiet button-icon"
        view={{...DEFAULT_VIEW, page: 'settings'}}
        title="You, tokens and users"
      >
        <IconPerson />
        <span class="off-screen">Settings</span>
      </ViewLink>
      <button
        type="button"
        class="button button-quiet button-icon"
        title="Shortcuts and legend (?)"
        aria-label="Shortcuts and legend"
        onClick={() => (helpIsOpen.value = true)}
      >
        <IconHelp />
      </button>
      <ThemeButton />
    </header>
  );
}

function ThemeButton(): JSX.Element {
  const label = `Theme: ${THEME_WORDS[theme.value]}`;
  return (
    <button
      type="button"
      class="button button-quiet button-icon"
      title={label}
      aria-label={label}
      onClick={() => (theme.value = nextTheme(theme.value))}
    >
      {theme.value === 'auto' ? <IconAuto /> : theme.value === 'dark' ? <IconMoon /> : <IconSun />}
    </button>
  );
}
