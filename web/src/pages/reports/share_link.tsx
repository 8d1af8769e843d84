// Links that show something to whoever has them: what leaves is shown first, each kind with a switch
// that is out, then the address, once; and the links there are, each with its end.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {BASE_URL, errorText, getReportContents} from '../../api/client';
import {
  createShare,
  getDocumentContents,
  getShares,
  revokeShare,
  type Share,
  type Shared,
} from '../../api/reports';
import {formatWhen, plural, sentence} from '../../base/format';
import {word} from '../../base/vocabulary';
import {CopyButton} from '../../ui/copy_button';
import {useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';

/** Left out unless somebody says otherwise; names that people chose are what the text is about. */
const USUALLY_OUT: readonly string[] = ['argv', 'hosts', 'paths', 'users'];
const DAY_MS = 86400000;
const ENDS: readonly {label: string; days: number}[] = [
  {label: 'in a week', days: 7},
  {label: 'in a month', days: 31},
  {label: 'in a year', days: 365},
  {label: 'never', days: 0},
];

export function ShareLink({what}: {what: Shared}): JSX.Element {
  const [round, setRound] = useState(0);
  const [leftOut, setLeftOut] = useState<readonly string[]>(USUALLY_OUT);
  const [days, setDays] = useState(31);
  const [url, setUrl] = useState('');
  const [problem, setProblem] = useState('');
  const key = 'report' in what ? what.report : what.trace;
  const contents = useResource(key, signal =>
    'report' in what ? getDocumentContents(key, signal) : getReportContents(key, signal),
  );
  const links = useResource(
    `${key}/${round}`,
    async signal => (await getShares(what, signal)).shares,
  );
  const known = links.kind === 'ready' ? links.value : links.kind === 'loading' ? links.stale : [];
  const make = async (): Promise<void> => {
    try {
      const ends = days === 0 ? undefined : new Date(Date.now() + days * DAY_MS).toISOString();
      const made = await createShare(what, {
        redact: leftOut,
        ...(ends === undefined ? {} : {expires_at: `${ends.slice(0, 19)}Z`}),
      });
      setUrl(new URL(made.url, BASE_URL).href);
      setProblem('');
      setRound(round + 1);
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  return (
    <div class="share-link">
      <p>
        Anyone with the link can read this, and nothing else. Search engines are told not to list
        it.
      </p>
      <StandIn of={contents} what="the link" title="The link could not be read" />
      {contents.kind === 'ready' && (
        <fieldset class="share-kinds">
          <legend>Include</legend>
          {contents.value.contains.map(row => (
            <Kind
              key={row.kind}
              kind={row.kind}
              count={row.count}
              items={row.items}
              isOut={leftOut.includes(row.kind)}
              onChange={isOut =>
                setLeftOut(
                  isOut ? [...leftOut, row.kind] : leftOut.filter(kind => kind !== row.kind),
                )
              }
            />
          ))}
        </fieldset>
      )}
      <div class="report-bar">
        <label class="muted">
          It ends{' '}
          <select
            class="input"
            value={String(days)}
            onChange={event => setDays(Number(event.currentTarget.value))}
          >
            {ENDS.map(end => (
              <option key={end.days} value={String(end.days)}>
                {end.label}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="button button-primary"
          disabled={contents.kind !== 'ready'}
          onClick={() => void make()}
        >
          Make a link
        </button>
      </div>
      {problem !== '' && (
        <p class="error-text" role="alert">
          {problem}
        </p>
      )}
      {url !== '' && (
        <p class="share-url" role="status">
          <input class="input" aria-label="The link" readOnly value={url} />
          <CopyButton text={url} label="Copy" />
          <span class="muted">It is shown only once.</span>
        </p>
      )}
      {known !== undefined && known.length > 0 && (
        <ul class="share-list">
          {known.map(link => (
            <Link key={link.id} link={link} onRevoked={() => setRound(round + 1)} />
          ))}
        </ul>
      )}
    </div>
  );
}

function Kind(props: {
  kind: string;
  count: number;
  items: readonly string[];
  isOut: boolean;
  onChange: (isOut: boolean) => void;
}): JSX.Element {
  const more = props.items.length > 3 ? ', …' : '';
  const found = props.count === 0 ? 'none found' : plural(props.count, 'place');
  return (
    <label class="check share-kind">
      <input type="checkbox" checked={!props.isOut} onChange={() => props.onChange(!props.isOut)} />
      <span>
        {sentence(word('redactions', props.kind).label)}{' '}
        <span class="faint">({props.isOut && props.count > 0 ? `${found}, left out` : found})</span>
        <span class="share-items break">{props.items.slice(0, 3).join(', ') + more}</span>
      </span>
    </label>
  );
}

function Link({link, onRevoked}: {link: Share; onRevoked: () => void}): JSX.Element {
  const [problem, setProblem] = useState('');
  const revoke = async (): Promise<void> => {
    try {
      await revokeShare(link.id);
      onRevoked();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  const isOver = link.expires_at !== undefined && Date.parse(link.expires_at) < Date.now();
  const ends =
    link.expires_at === undefined
      ? 'no expiry'
      : `${isOver ? /* text */ 'ended' : /* text */ 'until'} ${formatWhen(link.expires_at, new Date())}`;
  return (
    <li>
      <span class="muted">
        {`${link.kind === 'view' ? 'a view, ' : ''}made by ${link.author} ${formatWhen(link.created_at, new Date())}, ${ends}, read ${plural(link.used_count, 'time')}`}
      </span>{' '}
      <button type="button" class="button button-quiet" onClick={() => void revoke()}>
        Revoke
      </button>
      {problem !== '' && <span class="error-text">{problem}</span>}
    </li>
  );
}
