// The address of what is looked at: zoom, selection and filters included, a key or a token never.
import type {JSX} from 'preact';
import {BASE_URL} from '../api/client';
import {currentView, formatLocation} from '../model/view_state';
import {copyText} from './copy_button';
import {IconCheck, IconLink} from './icons';
import {useSaid} from './said';

const COPIED = /* text */ 'Link copied';

/** Asked when it is pressed, not when it is drawn: each frame of a zoom would draw it again. */
const addressNow = (): string => BASE_URL + formatLocation(currentView());

/** @param isWide with its words beside the icon */
export function CopyLink({isWide = false}: {isWide?: boolean}): JSX.Element {
  const [said, setSaid] = useSaid();
  return (
    <button
      type="button"
      class={isWide ? 'button copy-link' : 'button button-quiet button-icon copy-link'}
      title="Copy a link to what is shown here"
      onClick={() =>
        void copyText(addressNow()).then(done =>
          setSaid(done ? COPIED : 'The browser did not allow the copy.'),
        )
      }
    >
      {said === COPIED ? <IconCheck /> : <IconLink />}
      <span class={isWide ? '' : 'off-screen'}>Copy link</span>
      <span class="copy-link-said" role="status">
        {said}
      </span>
    </button>
  );
}
