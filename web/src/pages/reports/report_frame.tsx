// A document of the server in a frame of its own, where no script runs: the same HTML that a link
// shows and the exported file has. Nothing of it becomes part of this page.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {theme} from '../../model/view_state';

const SMALLEST_PX = 200;

export function ReportFrame({html, title}: {html: string; title: string}): JSX.Element {
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(SMALLEST_PX);
  const fit = (): void => {
    const inner = frame.current?.contentDocument;
    if (!inner?.body) return;
    if (theme.value === 'auto') inner.documentElement.removeAttribute('data-theme');
    else inner.documentElement.setAttribute('data-theme', theme.value);
    setHeight(Math.max(SMALLEST_PX, inner.body.scrollHeight + 8));
  };
  useEffect(() => {
    addEventListener('resize', fit);
    return () => removeEventListener('resize', fit);
  }, []);
  useEffect(fit, [theme.value]);
  return (
    <iframe
      ref={frame}
      class="report-frame"
      title={title}
      sandbox="allow-same-origin allow-popups allow-top-navigation-by-user-activation"
      srcdoc={html}
      height={height}
      onLoad={fit}
    />
  );
}
