// `?`: the keys that work now, and the letters of the causes.
import {Fragment, type JSX} from 'preact';
import {CAUSES, causeWord} from '../base/causes';
import {helpIsOpen, shortcutGroups} from '../model/shortcuts';
import {Chip, Swatch, topicOf} from './cause_mark';
import {Dialog} from './dialog';

/** Letters of verdicts that are no cause of waiting. */
const OTHER_LETTERS = [
  ['gpu', 'G', 'GPU-bound: kernels fill the step'],
  ['unknown', 'i', 'inference: no backward pass and no optimizer'],
  ['unknown', '~', 'no steps, or too few of them, for a verdict'],
  ['failed', '!', 'the file could not be read'],
] as const;

export function HelpDialog(): JSX.Element {
  return (
    <Dialog title="Shortcuts and legend" onClose={() => (helpIsOpen.value = false)}>
      <div class="help">
        {shortcutGroups.value.map(group => (
          <section key={group.title}>
            <h3>{group.title}</h3>
            <dl class="keys">
              {group.shortcuts.map(({keys, text}) => (
                <Fragment key={text}>
                  <dt>
                    {keys.map(key => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{text}</dd>
                </Fragment>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>What the GPU waits for</h3>
          <p class="muted">
            Work is gray. Each cause of waiting has a color, a letter and a pattern.
          </p>
          <dl class="causes-help">
            {CAUSES.map(cause => (
              <Fragment key={cause}>
                <dt>
                  <Chip topic={topicOf(cause)} /> <Swatch cause={cause} />
                </dt>
                <dd>
                  <strong>{causeWord(cause).short}</strong> {causeWord(cause).definition}
                </dd>
              </Fragment>
            ))}
            {OTHER_LETTERS.map(([topic, letter, text]) => (
              <Fragment key={letter}>
                <dt>
                  <Chip topic={topicOf(topic, letter)} />
                </dt>
                <dd>{text}</dd>
              </Fragment>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}
