// The address of what is looked at: zoom, selection and filters included, a key or a token never.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {BASE_URL} from '../api/client';
import {currentView, formatLocation} from '../model/view_state';
import {copyText} from './copy_button';
import {IconCheck, IconLink} from './icons';

const SHOWN_MS = 1600;

/** Asked when it is pressed, not when it is drawn: each frame of a zoom would draw it again. */
const addressNow = (): string => BASE_URL + formatLocation(currentView());

/** @param isWide with its words beside the icon */
export function CopyLink({isWide = false}: {isWide?: boolean}): JSX.Element {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (said === '') return undefined;
    const timer = setTimeout(() => setSaid(''), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button
      type="button"
      class={isWide ? 'button copy-link' : 'button button-quiet button-icon copy-link'}
      title="Copy a link to what is shown here"
      onClick={() =>
        void copyText(addressNow()).then(done =>
          setSaid(done ? 'Link copied' : 'The browser did not allow the copy.'),
        )
      }
    >
      {said === 'Link copied' ? <IconCheck /> : <IconLink />}
      <span class={isWide ? '' : 'off-screen'}>Copy link</span>
      <span class="copy-link-said" role="status">
        {said}
      </span>
    </button>
  );
}
