// Traces dropped anywhere on the page, or chosen in a dialog. Folders are searched for files.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {enqueue} from '../model/uploads';
import {openTrace, page, traceId} from '../model/view_state';
import {IconUpload} from '../ui/icons';

const FOLDER_DEPTH_MAX = 4;
const TRACE_FILE =
  /tfevents|\.(json|gz|zst|tgz|tar|trace|sqlite|db|rpd|pftrace|perfetto-trace|nvvp|nvprof|csv|prof|lprof|folded|nmon|pickle)$/i;

async function filesOfEntry(entry: FileSystemEntry, depth: number): Promise<File[]> {
  if (entry.isFile)
    return [
      await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail)),
    ];
  if (!entry.isDirectory || depth >= FOLDER_DEPTH_MAX) return [];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: File[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((done, fail) =>
      reader.readEntries(done, fail),
    );
    if (part.length === 0) break;
    for (const child of part) found.push(...(await filesOfEntry(child, depth + 1)));
  }
  // beside what was named by hand, only what looks like a trace
  return found.filter(file => TRACE_FILE.test(file.name));
}

async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry());
  if (entries.every(entry => entry === null)) return [...transfer.files];
  const lists = await Promise.all(entries.map(e => (e === null ? [] : filesOfEntry(e, 0))));
  return lists.flat();
}

function accept(files: readonly File[], joinTo?: string): void {
  if (files.length === 0) return;
  if (page.value !== 'list') openTrace(undefined);
  enqueue(files, joinTo);
}

/** Over an open trace the right half asks for a join with it. */
function joinsAt(event: DragEvent): boolean {
  return traceId.value !== undefined && page.value !== 'list' && event.clientX > innerWidth / 2;
}

/** Listens on the whole window; shows itself only while something is dragged over it. */
export function DropZone(): JSX.Element | null {
  const [over, setOver] = useState(false);
  const [joins, setJoins] = useState(false);
  useEffect(() => {
    let depth = 0;
    const isFiles = (event: DragEvent): boolean =>
      event.dataTransfer?.types.includes('Files') ?? false;
    const onEnter = (event: DragEvent): void => {
      if (!isFiles(event)) return;
      event.preventDefault();
      depth += 1;
      setOver(true);
    };
    const onOver = (event: DragEvent): void => {
      if (!isFiles(event)) return;
      event.preventDefault();
      setJoins(joinsAt(event));
    };
    const onLeave = (event: DragEvent): void => {
      if (!isFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      if (!isFiles(event) || !event.dataTransfer) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      const joinTo = joinsAt(event) ? traceId.value : undefined;
      void droppedFiles(event.dataTransfer).then(files => accept(files, joinTo));
    };
    addEventListener('dragenter', onEnter);
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragenter', onEnter);
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
    };
  }, []);
  if (!over) return null;
  return (
    <div class="drop-cover" aria-hidden="true">
      <div data-here={!joins}>
        <IconUpload />
        <strong>{traceId.value === undefined ? 'Drop traces here' : 'A new trace'}</strong>
        <span>
          .json, .gz, .zst, a .tar.gz of ranks, or the .sqlite of an Nsight Systems export
        </span>
      </div>
      {traceId.value !== undefined && (
        <div data-here={joins}>
          <IconUpload />
          <strong>Join to this trace</strong>
          <span>
            a log of nvidia-smi, dmon, nmon or TensorBoard, a profile, or annotations of CUDA
            graphs, of the same job
          </span>
        </div>
      )}
    </div>
  );
}

export function UploadButton({primary = true}: {primary?: boolean}): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        id="upload-input"
        class="off-screen"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Trace files"
        onChange={event => {
          accept([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = '';
        }}
      />
      <button
        type="button"
        class={`button ${primary ? 'button-primary' : ''}`}
        onClick={() => input.current?.click()}
      >
        <IconUpload /> Add traces
      </button>
    </>
  );
}
