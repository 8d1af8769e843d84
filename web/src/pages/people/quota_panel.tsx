// How much a project holds and may hold; administrators of the service set it.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {ApiError} from '../../api/client';
import {getQuota, getWho, putQuota, type Quota} from '../../api/people';
import {formatBytes} from '../../base/format';
import {latest, useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';
import {Problem, useAct} from './act';

interface Shown {
  readonly quota: Quota;
  readonly maySet: boolean;
}

/** A server that does not tell has no such panel. */
async function quotaOf(project: string, signal: AbortSignal): Promise<Shown | 'hidden'> {
  try {
    const [quota, who] = await Promise.all([getQuota(project, signal), getWho(signal)]);
    return {quota, maySet: who.is_admin};
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return 'hidden';
    throw error;
  }
}

export function QuotaPanel({name}: {name: string}): JSX.Element | null {
  const [round, setRound] = useState(0);
  const reply = useResource(`${name}/${round}`, signal => quotaOf(name, signal));
  const shown = latest(reply);
  if (shown === 'hidden') return null;
  return (
    <section class="panel" data-testid="quota">
      <h2>Storage</h2>
      <StandIn keeps of={reply} what="how much the project holds" />
      {shown && <Used quota={shown.quota} />}
      {shown?.maySet && <LimitForm name={name} changed={() => setRound(round + 1)} />}
    </section>
  );
}

function Used({quota}: {quota: Quota}): JSX.Element {
  const used = formatBytes(quota.used_bytes);
  if (quota.limit_bytes === undefined)
    return (
      <p>
        {used} of uploads, without a limit{quota.is_default ? '.' : ' of its own.'}
      </p>
    );
  return (
    <p>
      {used} of {formatBytes(quota.limit_bytes)}
      {quota.is_default ? ', as every project' : ''}. Uploads that do not fit are refused; deleting
      traces makes room.{' '}
      <progress
        aria-label="Storage in use"
        value={Math.min(quota.used_bytes, quota.limit_bytes)}
        max={quota.limit_bytes}
      />
    </p>
  );
}

function LimitForm({name, changed}: {name: string; changed: () => void}): JSX.Element {
  const [limit, setLimit] = useState('');
  const {act, isBusy, problem} = useAct();
  const set = (to: string): void =>
    act(
      () => putQuota(name, to),
      () => {
        setLimit('');
        changed();
      },
    );
  return (
    <form
      class="people-form"
      aria-label="Storage"
      onSubmit={event => {
        event.preventDefault();
        set(limit.trim());
      }}
    >
      <label>
        Limit
        <input
          class="input"
          required
          maxLength={32}
          placeholder="200G"
          autocomplete="off"
          value={limit}
          onInput={event => setLimit(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button" disabled={isBusy}>
        Set
      </button>
      <button
        type="button"
        class="button button-quiet"
        disabled={isBusy}
        onClick={() => set('none')}
      >
        No limit
      </button>
      <button
        type="button"
        class="button button-quiet"
        disabled={isBusy}
        onClick={() => set('default')}
      >
        As every project
      </button>
      <Problem text={problem} />
    </form>
  );
}
