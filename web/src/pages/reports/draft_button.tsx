// A report by one press: drafted of one trace, of two before and after, or of several in a row.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../../api/client';
import {createReport} from '../../api/reports';
import {sentence} from '../../base/format';
import {DEFAULT_VIEW, show} from '../../model/view_state';

export function DraftButton(props: {
  from: readonly string[];
  project?: string;
  onMade?: () => void;
}): JSX.Element {
  const [problem, setProblem] = useState('');
  const draft = async (): Promise<void> => {
    try {
      const made = await createReport({from: props.from, project: props.project ?? ''});
      props.onMade?.();
      show({...DEFAULT_VIEW, page: 'reports', reportId: made.id});
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  return (
    <>
      <button type="button" class="button" onClick={() => void draft()}>
        Write a report
      </button>
      {problem !== '' && (
        <span class="error-text" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}
