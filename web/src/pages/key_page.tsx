// Shown while the server does not know this browser: how to get the key.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText, openSession} from '../api/client';
import {Header} from '../ui/header';

export function KeyPage(props: {wrongKey: boolean; onOpen: () => void}): JSX.Element {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | undefined>(
    props.wrongKey ? 'The key in this address is not this server’s key.' : undefined,
  );
  const submit = async (): Promise<void> => {
    const key = /#key=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
    if (key === '') return;
    try {
      if (await openSession(key)) props.onOpen();
      else setProblem('Wrong key.');
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  return (
    <>
      <Header />
      <main class="page page-key">
        <h1>Enter this server’s key</h1>
        <p>
          Any program on this machine can reach <code>{location.host}</code>, so the server asks for
          a key. When it starts, it prints an address that ends in <code>#key=…</code>: open that
          address, or paste it here.
        </p>
        <form
          class="key-form"
          onSubmit={event => {
            event.preventDefault();
            void submit();
          }}
        >
          <input
            class="input"
            type="password"
            autocomplete="off"
            aria-label="Key or printed address"
            placeholder="key or printed address"
            value={text}
            onInput={event => setText(event.currentTarget.value)}
          />
          <button type="submit" class="button button-primary">
            Open
          </button>
        </form>
        {problem !== undefined && (
          <p class="error-text" role="alert">
            {problem}
          </p>
        )}
        <p class="muted">
          The key is also in <code>local.token</code> in the server’s data folder, a file that only
          its owner can read.
        </p>
      </main>
    </>
  );
}
