// Drawn by hand on a 16 x 16 grid, stroked with the color of the text around them.
import type {ComponentChildren, JSX} from 'preact';

function Icon({children}: {children: ComponentChildren}): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      {children}
    </svg>
  );
}

export const IconUpload = () => (
  <Icon>
    <path d="M8 10.5V2.5M4.8 5.5 8 2.3l3.2 3.2M2.5 10.5v2.2c0 .5.4.8.8.8h9.4c.5 0 .8-.3.8-.8v-2.2" />
  </Icon>
);
export const IconCopy = () => (
  <Icon>
    <path d="M5.5 5.5v-2c0-.6.4-1 1-1h6c.6 0 1 .4 1 1v6c0 .6-.4 1-1 1h-2M3.5 5.5h6c.6 0 1 .4 1 1v6c0 .6-.4 1-1 1h-6c-.6 0-1-.4-1-1v-6c0-.6.4-1 1-1Z" />
  </Icon>
);
export const IconLink = () => (
  <Icon>
    <path d="M6.8 9.2a2.5 2.5 0 0 0 3.6 0l2.2-2.3a2.5 2.5 0 0 0-3.5-3.5L8 4.5M9.2 6.8a2.5 2.5 0 0 0-3.6 0L3.4 9.1a2.5 2.5 0 0 0 3.5 3.5L8 11.5" />
  </Icon>
);
export const IconCheck = () => (
  <Icon>
    <path d="m3 8.5 3.2 3.2L13 4.5" />
  </Icon>
);
export const IconArrow = () => (
  <Icon>
    <path d="M3 8h9.5M9 4.3 12.7 8 9 11.7" />
  </Icon>
);
export const IconBack = () => (
  <Icon>
    <path d="M10 3.5 5.5 8l4.5 4.5" />
  </Icon>
);
export const IconChevron = () => (
  <Icon>
    <path d="m6 3.5 4.5 4.5L6 12.5" />
  </Icon>
);
export const IconClose = () => (
  <Icon>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
);
export const IconTrash = () => (
  <Icon>
    <path d="M2.5 4.5h11M6 4.2V3c0-.4.3-.7.7-.7h2.6c.4 0 .7.3.7.7v1.2M4 4.5l.6 8.2c0 .5.4.8.8.8h5.2c.4 0 .8-.3.8-.8L12 4.5M6.8 7v4M9.2 7v4" />
  </Icon>
);
export const IconSearch = () => (
  <Icon>
    <path d="M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.2 3.2" />
  </Icon>
);
export const IconPerson = () => (
  <Icon>
    <path d="M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8ZM2.8 13.5a5.2 5.2 0 0 1 10.4 0" />
  </Icon>
);
export const IconHelp = () => (
  <Icon>
    <path d="M5.8 6.1c0-1.3 1-2.1 2.3-2.1 1.2 0 2.2.8 2.2 2 0 1.7-2.2 1.8-2.2 3.5M8.1 12v.2" />
  </Icon>
);
export const IconSun = () => (
  <Icon>
    <path d="M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9" />
  </Icon>
);
export const IconMoon = () => (
  <Icon>
    <path d="M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z" />
  </Icon>
);
export const IconAuto = () => (
  <Icon>
    <path d="M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z" />
    <path class="icon-fill" d="M8 2.5a5.5 5.5 0 0 1 0 11Z" />
  </Icon>
);
export const IconWarning = () => (
  <Icon>
    <path d="M8 2.6 14 13H2L8 2.6ZM8 6.6v3M8 11.3v.2" />
  </Icon>
);

/** The mark: a bar with a piece missing. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 16" width="24" height="16" aria-hidden="true">
      <rect class="mark-bar" x="0" y="2" width="8" height="12" rx="2" />
      <rect class="mark-gap" x="10" y="2" width="4" height="12" rx="1" />
      <rect class="mark-bar" x="16" y="2" width="8" height="12" rx="2" />
    </svg>
  );
}
export const IconPencil = () => (
  <Icon>
    <path d="m10.5 3 2.5 2.5-7.3 7.3-3 .5.5-3L10.5 3ZM9 4.5 11.5 7" />
  </Icon>
);
export const IconNote = () => (
  <Icon>
    <path d="M3 2.5h10v7.6l-3.4 3.4H3v-11ZM9.6 13.4V10H13M5.5 5.5h5M5.5 8h3" />
  </Icon>
);
export const IconSwap = () => (
  <Icon>
    <path d="M2.5 5.5h10M10 3l2.5 2.5L10 8M13.5 10.5h-10M6 8l-2.5 2.5L6 13" />
  </Icon>
);
