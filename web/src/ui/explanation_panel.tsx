// What a number means and all its digits, beside the number that was pressed.
import type {JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {CopyButton} from './copy_button';
import {explained} from './explain';
import {ViewLink} from './link';

function hideExplanation(): void {
  explained.value = undefined;
}

const MARGIN_PX = 8;

/** The one panel; mounted at the page's end. */
export function ExplanationPanel(): JSX.Element | null {
  const panel = useRef<HTMLDivElement>(null);
  const explanation = explained.value;

  useLayoutEffect(() => {
    const element = panel.current;
    if (!element || !explanation) return;
    const anchor = explanation.anchor.getBoundingClientRect();
    const size = element.getBoundingClientRect();
    const left = Math.min(anchor.left, innerWidth - size.width - MARGIN_PX);
    const below = anchor.bottom + MARGIN_PX;
    const above = anchor.top - size.height - MARGIN_PX;
    const top = below + size.height > innerHeight && above > 0 ? above : below;
    element.style.left = `${Math.max(MARGIN_PX, left)}px`;
    element.style.top = `${top}px`;
  }, [explanation]);

  useEffect(() => {
    if (!explanation) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      explanation.anchor.focus();
      hideExplanation();
      event.stopPropagation();
    };
    const onPress = (event: Event): void => {
      if (!(event.target instanceof Node)) return;
      if (panel.current?.contains(event.target) || explanation.anchor.contains(event.target))
        return;
      hideExplanation();
    };
    document.addEventListener('keydown', onKey, true);
    document.addEventListener('pointerdown', onPress);
    addEventListener('scroll', hideExplanation, {passive: true, capture: true});
    addEventListener('resize', hideExplanation);
    return () => {
      document.removeEventListener('keydown', onKey, true);
      document.removeEventListener('pointerdown', onPress);
      removeEventListener('scroll', hideExplanation, {capture: true});
      removeEventListener('resize', hideExplanation);
    };
  }, [explanation]);

  if (!explanation) return null;
  return (
    <div ref={panel} class="explanation" role="dialog" aria-label={explanation.title}>
      <strong>{explanation.title}</strong>
      <p>{explanation.text}</p>
      {explanation.exact !== undefined && (
        <div class="explanation-exact">
          <code>{explanation.exact}</code>
          <CopyButton text={explanation.exact} label="Copy the value" />
        </div>
      )}
      {explanation.view && (
        <p onClick={hideExplanation}>
          <ViewLink view={explanation.view}>Show what it counts</ViewLink>
        </p>
      )}
    </div>
  );
}
