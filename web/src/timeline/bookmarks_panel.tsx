// Bookmarks: the list of them in the dock, and the dialog in which a note is written.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {exactNs, formatAt, formatDuration, sentence} from '../base/format';
import {Dialog} from '../ui/dialog';
import type {DetailsProps} from './details_parts';
import type {BookmarkDraft, Bookmarks} from './data/bookmarks';

const NOTE_LENGTH = 1000;

const length = (dur: number): string => (dur > 0 ? formatDuration(dur) : '');

export function BookmarkList({model, navigator}: DetailsProps): JSX.Element {
  const {bookmarks} = model;
  return (
    <div class="tl-dock-body">
      <table class="tl-dock-table">
        <thead>
          <tr>
            <th scope="col">note</th>
            <th scope="col">at</th>
            <th scope="col">duration</th>
            <th scope="col">by</th>
          </tr>
        </thead>
        <tbody>
          {bookmarks.all.value.map(mark => (
            <tr key={mark.id}>
              <th scope="row" title={mark.note}>
                <button
                  type="button"
                  class="tl-dock-go"
                  onClick={() => navigator.goToBookmark(mark)}
                >
                  {mark.note || 'no note'}
                </button>
              </th>
              <td title={exactNs(mark.start_ns)}>{formatDuration(mark.start_ns, 7)}</td>
              <td title={exactNs(mark.dur_ns)}>{length(mark.dur_ns)}</td>
              <td class="tl-dock-kind">
                {mark.author}{' '}
                <button
                  type="button"
                  class="tl-dock-go"
                  aria-label={`Edit the bookmark ${mark.note}`}
                  onClick={() => (bookmarks.draft.value = mark)}
                >
                  edit
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Of the draft that there is. */
export function BookmarkDialog({bookmarks}: {bookmarks: Bookmarks}): JSX.Element | null {
  const draft = bookmarks.draft.value;
  return draft ? <Editor key={draft.id} bookmarks={bookmarks} draft={draft} /> : null;
}

function Editor({bookmarks, draft}: {bookmarks: Bookmarks; draft: BookmarkDraft}): JSX.Element {
  const [note, setNote] = useState(draft.note);
  const [problem, setProblem] = useState('');
  const busy = useRef(false);
  const close = (): void => {
    bookmarks.draft.value = undefined;
  };
  const run = async (change: () => Promise<void>): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    try {
      await change();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    } finally {
      busy.current = false;
    }
  };
  const {id, start_ns: start, dur_ns: dur} = draft;
  const save = (): void => void run(() => bookmarks.save({...draft, note: note.trim()}));
  return (
    <Dialog title={id === undefined ? 'New bookmark' : 'Bookmark'} onClose={close}>
      <form
        class="tl-bookmark"
        onSubmit={event => {
          event.preventDefault();
          save();
        }}
      >
        <p class="tl-muted" title={exactNs(start)}>
          At {formatAt(start, Math.max(1000, dur))}
          {dur > 0 && `, ${formatDuration(dur)} long`}
        </p>
        <label>
          Note (optional)
          <textarea
            class="input"
            rows={3}
            maxLength={NOTE_LENGTH}
            value={note}
            autofocus
            onInput={event => setNote(event.currentTarget.value)}
            onKeyDown={event => {
              if (event.key !== 'Enter' || event.shiftKey) return;
              event.preventDefault();
              save();
            }}
          />
        </label>
        {problem !== '' && (
          <p class="error-text" role="alert">
            {problem}
          </p>
        )}
        <div class="tl-actions">
          <button type="submit" class="button button-primary">
            Save
          </button>
          {id !== undefined && (
            <button
              type="button"
              class="button"
              onClick={() => void run(() => bookmarks.remove(id))}
            >
              Delete
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
