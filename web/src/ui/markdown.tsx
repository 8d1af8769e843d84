// A document of ours as elements; its text is only ever text.
import type {JSX} from 'preact';
import {parseMarkdown, type Block, type Span} from '../model/markdown';
import {CopyButton} from './copy_button';
import {ViewLink} from './link';

export function Markdown({text}: {text: string}): JSX.Element {
  return (
    <div class="prose">
      {parseMarkdown(text).map((block, index) => (
        <BlockElement key={index} block={block} />
      ))}
    </div>
  );
}

function BlockElement({block}: {block: Block}): JSX.Element {
  switch (block.kind) {
    case 'heading':
      if (block.level === 1) return <h1>{spans(block.spans)}</h1>;
      return block.level === 2 ? <h2>{spans(block.spans)}</h2> : <h3>{spans(block.spans)}</h3>;
    case 'paragraph':
      return <p>{spans(block.spans)}</p>;
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{spans(item)}</li>);
      return block.isOrdered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case 'table': {
      const [head = [], ...rows] = block.rows;
      return (
        <div class="prose-table">
          <table>
            <thead>
              <tr>
                {head.map((cell, index) => (
                  <th key={index} scope="col">
                    {spans(cell)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{spans(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
    case 'code':
      return (
        <div class="code">
          <pre>{block.text}</pre>
          <CopyButton text={block.text} label="Copy" />
        </div>
      );
  }
}

function spans(all: readonly Span[]): JSX.Element[] {
  return all.map((span, index) => <SpanElement key={index} span={span} />);
}

function SpanElement({span}: {span: Span}): JSX.Element {
  switch (span.kind) {
    case 'code':
      return <code>{span.text}</code>;
    case 'strong':
      return <strong>{span.text}</strong>;
    case 'link':
      return span.href.endsWith('.md') ? (
        <ViewLink view={{page: 'findings', findingId: span.href.slice(0, -3)}}>
          {span.text}
        </ViewLink>
      ) : (
        <a href={span.href} rel="noreferrer">
          {span.text}
        </a>
      );
    case 'text':
      return <>{span.text}</>;
  }
}
