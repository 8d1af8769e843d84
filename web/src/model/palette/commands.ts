// What can be done now, by name: for the command palette. Whoever can do something registers it here.
import {signal} from '@preact/signals';

export interface Command {
  readonly name: string;
  /** Shown beside it: its keys, or what it belongs to. */
  readonly hint: string;
  readonly run: () => void;
}

const lists = signal<readonly (readonly Command[])[]>([]);

export const paletteIsOpen = signal(false);

/** @return a function that takes them away again */
export function registerCommands(list: readonly Command[]): () => void {
  lists.value = [...lists.value, list];
  return () => {
    lists.value = lists.value.filter(each => each !== list);
  };
}

/** The latest first: what belongs to the view comes before what is always there. */
export const commandsNow = (): readonly Command[] => [...lists.value].reverse().flat();

// ---- places in the trace that is shown

/** When its steps begin and how long they take. */
export interface Places {
  readonly durationNs: number;
  readonly stepStartNs: readonly number[];
  readonly stepDurNs: readonly number[];
}

export const places = signal<Places | undefined>(undefined);
