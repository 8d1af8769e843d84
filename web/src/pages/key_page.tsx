// Shown while the server does not know this browser: sign in, or show the server's key.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {apiUrl, errorText, signIn} from '../api/client';
import {Header} from '../ui/header';

function Field(props: {
  label: string;
  name: string;
  autocomplete: string;
  isSecret: boolean;
  value: string;
  set: (value: string) => void;
}): JSX.Element {
  const shared = {
    class: 'input',
    name: props.name,
    autocomplete: props.autocomplete,
    'aria-label': props.label,
    placeholder: props.label,
    value: props.value,
    onInput: (event: {currentTarget: {value: string}}) => props.set(event.currentTarget.value),
  };
  return props.isSecret ? <input type="password" {...shared} /> : <input type="text" {...shared} />;
}

/** One line of fields and a button; what went wrong is below it. */
function SignForm(props: {
  button: string;
  children: JSX.Element | JSX.Element[];
  send: () => Promise<string | undefined>;
  problem?: string | undefined;
}): JSX.Element {
  const [problem, setProblem] = useState(props.problem);
  return (
    <>
      <form
        class="key-form"
        onSubmit={event => {
          event.preventDefault();
          props.send().then(setProblem, (error: unknown) => setProblem(errorText(error)));
        }}
      >
        {props.children}
        <button type="submit" class="button button-primary">
          {props.button}
        </button>
      </form>
      {problem !== undefined && (
        <p class="error-text" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

/** A link to the provider, where the server has one: then it leads away. */
function Provider(): JSX.Element | null {
  const [isThere, setThere] = useState(false);
  const url = apiUrl('session/oidc');
  useEffect(() => {
    fetch(url, {redirect: 'manual'}).then(
      reply => setThere(reply.type === 'opaqueredirect'),
      () => undefined,
    );
  }, []);
  if (!isThere) return null;
  return (
    <p>
      <a class="button" href={url}>
        Sign in at your organization
      </a>
    </p>
  );
}

export function KeyPage(props: {wrongKey: boolean; onOpen: () => void}): JSX.Element {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const isOpened = (isRight: boolean, problem: string): string | undefined => {
    if (!isRight) return problem;
    props.onOpen();
    return undefined;
  };
  const sendKey = async (): Promise<string | undefined> => {
    const key = /#key=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
    return key === '' ? undefined : isOpened(await signIn({key}), 'Wrong key.');
  };
  const sendName = async (): Promise<string | undefined> =>
    isOpened(await signIn({name: name.trim(), password}), 'Wrong name or password.');
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
        <SignForm
          button="Open"
          send={sendKey}
          problem={props.wrongKey ? 'The key in this address is not this server’s key.' : undefined}
        >
          <Field
            label="key or printed address"
            name="key"
            autocomplete="off"
            isSecret
            value={text}
            set={setText}
          />
        </SignForm>
        <p class="muted">
          The key is also in <code>local.token</code> in the server’s data folder, a file that only
          its owner can read.
        </p>
        <h2>Or sign in</h2>
        <p>On a team’s server, with the name and password that its administrator gave you.</p>
        <SignForm button="Sign in" send={sendName}>
          <Field
            label="name"
            name="name"
            autocomplete="username"
            isSecret={false}
            value={name}
            set={setName}
          />
          <Field
            label="password"
            name="password"
            autocomplete="current-password"
            isSecret
            value={password}
            set={setPassword}
          />
        </SignForm>
        <Provider />
      </main>
    </>
  );
}
