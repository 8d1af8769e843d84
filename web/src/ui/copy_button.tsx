import type {JSX} from 'preact';
import {IconCheck, IconCopy} from './icons';
import {useSaid} from './said';

const COPIED = /* text */ 'copied';

/** Typographic spaces become plain spaces. */
function pasteable(text: string): string {
  return text.replaceAll('\u202f', ' ').replaceAll('\u2212', '-');
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // no clipboard API without a secure origin: the old way
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'off-screen';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

export function CopyButton({text, label = 'Copy'}: {text: string; label?: string}): JSX.Element {
  const [said, setSaid] = useSaid();
  return (
    <button
      type="button"
      class="button button-quiet button-icon copy"
      aria-label={label}
      title={label}
      onClick={event => {
        event.stopPropagation();
        void copyText(pasteable(text)).then(done =>
          setSaid(done ? COPIED : 'select the text and copy it'),
        );
      }}
    >
      {said === COPIED ? <IconCheck /> : <IconCopy />}
      <span class="copy-word" role="status">
        {said}
      </span>
    </button>
  );
}
